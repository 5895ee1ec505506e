package hostnode

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of the pod conditions, as the kubelet writes them.
const (
	reasonPodCompleted             = "PodCompleted"
	reasonPodFailed                = "PodFailed"
	reasonContainersNotReady       = "ContainersNotReady"
	reasonContainersNotInitialized = "ContainersNotInitialized"
	reasonReadinessGatesNotReady   = "ReadinessGatesNotReady"
)

// conditions are those a kubelet owns, with the transition times of f.old where the condition's status is the same.
func (f facts) conditions(s *corev1.PodStatus) []corev1.PodCondition {
	containersReady := f.containersReady(s)
	list := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: truth(!f.over && !f.refused)},
		f.podInitialized(s),
		f.podReady(containersReady),
		containersReady,
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	for i := range list {
		f.stamp(&list[i])
	}
	return list
}

func (f facts) stamp(c *corev1.PodCondition) {
	c.ObservedGeneration = f.pod.Generation
	c.LastTransitionTime = *seconds(f.now)
	if old := conditionOf(f.old.Conditions, c.Type); old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
}

func conditionOf(list []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

func truth(b bool) corev1.ConditionStatus {
	if b {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

func (f facts) containersReady(s *corev1.PodStatus) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}
	switch s.Phase {
	case corev1.PodSucceeded:
		c.Reason = reasonPodCompleted
		return c
	case corev1.PodFailed:
		c.Reason = reasonPodFailed
		return c
	}
	var unready []string
	for _, r := range f.containers {
		if r.role != roleInit && !r.alive() {
			unready = append(unready, r.spec.Name)
		}
	}
	if len(unready) > 0 {
		c.Reason, c.Message = reasonContainersNotReady, fmt.Sprintf("containers with unready status: %s", unready)
		return c
	}
	c.Status = corev1.ConditionTrue
	return c
}

// podReady is ContainersReady and all of the pod's readiness gates, which other controllers set.
func (f facts) podReady(containersReady corev1.PodCondition) corev1.PodCondition {
	c := containersReady
	c.Type = corev1.PodReady
	if c.Status != corev1.ConditionTrue {
		return c
	}
	var problems []string
	for _, gate := range f.pod.Spec.ReadinessGates {
		found := conditionOf(f.pod.Status.Conditions, gate.ConditionType)
		if found == nil {
			problems = append(problems, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
			continue
		}
		if found.Status != corev1.ConditionTrue {
			problems = append(problems, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, found.Status))
		}
	}
	if len(problems) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, reasonReadinessGatesNotReady, strings.Join(problems, ", ")
	}
	return c
}

func (f facts) podInitialized(s *corev1.PodStatus) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if s.Phase == corev1.PodSucceeded {
		c.Reason = reasonPodCompleted
		return c
	}
	if incomplete := f.incomplete(); len(incomplete) > 0 {
		c.Status, c.Reason = corev1.ConditionFalse, reasonContainersNotInitialized
		c.Message = fmt.Sprintf("containers with incomplete status: %s", incomplete)
	}
	return c
}
