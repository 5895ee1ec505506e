package hostnode

import (
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/kubelet/status"
)

// conditions are those that a kubelet owns, made by the kubelet's own functions, with the transition times of f.old where
// the condition's status is the same.
func (f facts) conditions(s *corev1.PodStatus) []corev1.PodCondition {
	init := append([]corev1.ContainerStatus{}, s.InitContainerStatuses...)
	all := append(init, s.ContainerStatuses...) // never nil, which would mean unknown
	started := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}
	if f.over || f.refused {
		started.Status = corev1.ConditionFalse
	}
	list := []corev1.PodCondition{
		started,
		status.GeneratePodInitializedCondition(f.pod, f.old, all, s.Phase),
		status.GeneratePodReadyCondition(f.pod, f.old, f.pod.Status.Conditions, all, s.Phase),
		status.GenerateContainersReadyCondition(f.pod, f.old, all, s.Phase),
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	for i := range list {
		c := &list[i]
		c.ObservedGeneration, c.LastTransitionTime = f.pod.Generation, *seconds(f.now)
		if _, old := podutil.GetPodCondition(f.old, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return list
}
