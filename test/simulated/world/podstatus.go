package world

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

// setPodCondition sets a condition of a pod, and when it changed.
func setPodCondition(pod *corev1.Pod, c corev1.PodCondition) {
	c.LastTransitionTime = metav1.Now()
	i := slices.IndexFunc(pod.Status.Conditions, func(old corev1.PodCondition) bool { return old.Type == c.Type })
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, c)
		return
	}
	if pod.Status.Conditions[i].Status != c.Status {
		pod.Status.Conditions[i] = c
	}
}

// setRunning makes all containers run.
func setRunning(pod *corev1.Pod, ready bool) {
	now := metav1.Now()
	pod.Status.Phase = corev1.PodRunning
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &now
	}
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if ready {
		condition.Status = corev1.ConditionTrue
	}
	setPodCondition(pod, condition)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	eachContainer(pod, func(c corev1.Container, s *corev1.ContainerStatus, first bool) {
		if s.State == (corev1.ContainerState{}) {
			s.State = running
		}
		s.Ready = ready
		if first && !jobspec.Sidecar(c) {
			s.State, s.Ready = terminated(0, now), true
		}
	})
}

// setRestarts makes the first main container have failed and restarted a few times.
func setRestarts(pod *corev1.Pod, n int32) {
	now := metav1.Now()
	if len(pod.Status.ContainerStatuses) == 0 {
		return
	}
	s := &pod.Status.ContainerStatuses[0]
	s.RestartCount += n
	s.LastTerminationState = terminated(1, now)
}

// setEnded ends all containers with exit code 0, except the one that the fate names.
func setEnded(pod *corev1.Pod, phase corev1.PodPhase, f fate) {
	now := metav1.Now()
	pod.Status.Phase = phase
	setPodCondition(pod, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse})
	count := len(pod.Spec.InitContainers) + len(pod.Spec.Containers)
	which := len(pod.Spec.InitContainers) + f.container%len(pod.Spec.Containers)
	if f.container == 3 { // One in four, if there is such a container.
		which = count - 1 - len(pod.Spec.Containers)
	}
	n := 0
	early := false
	eachContainer(pod, func(c corev1.Container, s *corev1.ContainerStatus, first bool) {
		s.Ready = false
		s.State = terminated(0, now)
		if early {
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
		}
		if n == which || which < 0 && n == 0 {
			s.State = terminated(f.exit, now)
			early = first && !jobspec.Sidecar(c) && f.exit != 0
		}
		n++
	})
}

func terminated(exit int32, now metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: exit, StartedAt: metav1.NewTime(now.Add(-time.Second)), FinishedAt: now,
	}}
}

// eachContainer calls a function for the status of each container, init containers
// first, and adds missing statuses.
func eachContainer(pod *corev1.Pod, do func(c corev1.Container, s *corev1.ContainerStatus, first bool)) {
	through := func(containers []corev1.Container, statuses *[]corev1.ContainerStatus, first bool) {
		for i, c := range containers {
			if len(*statuses) <= i {
				*statuses = append(*statuses, corev1.ContainerStatus{Name: c.Name})
			}
			do(c, &(*statuses)[i], first)
		}
	}
	through(pod.Spec.InitContainers, &pod.Status.InitContainerStatuses, true)
	through(pod.Spec.Containers, &pod.Status.ContainerStatuses, false)
}

// disrupt sets the condition that says that something outside of the pod ends it.
func disrupt(pod *corev1.Pod, reason string) {
	setPodCondition(pod, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: "as drawn"})
}
