// Package podstatus writes the statuses with which simulated nodes report their pods: the
// phase, the conditions, and the state of each container.
package podstatus

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

// SetCondition sets a condition of a pod. Its time changes only together with its status.
func SetCondition(pod *corev1.Pod, kind corev1.PodConditionType, is bool, reason string, at time.Time) {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(at)}
	if is {
		c.Status = corev1.ConditionTrue
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(old corev1.PodCondition) bool { return old.Type == kind })
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, c)
		return
	}
	if pod.Status.Conditions[i].Status != c.Status {
		pod.Status.Conditions[i] = c
	}
}

// SetRunning makes all main containers and sidecars run, since a time. The other init containers
// have succeeded.
func SetRunning(pod *corev1.Pod, ready bool, since time.Time) {
	at := metav1.NewTime(since)
	pod.Status.Phase = corev1.PodRunning
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &at
	}
	SetCondition(pod, corev1.PodReady, ready, "", since)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	eachContainer(pod, func(c corev1.Container, s *corev1.ContainerStatus, first bool) {
		if s.State == (corev1.ContainerState{}) {
			s.State = running
		}
		s.Ready = ready
		if first && !jobspec.Sidecar(c) {
			s.State, s.Ready = Terminated(0, since), true
		}
	})
}

// SetEnded ends all containers with exit code 0, except the one with that name. If that is an init
// container that failed, those after it were never started.
func SetEnded(pod *corev1.Pod, phase corev1.PodPhase, container string, exit int32, at time.Time) {
	pod.Status.Phase = phase
	SetCondition(pod, corev1.PodReady, false, "", at)
	early := false
	eachContainer(pod, func(c corev1.Container, s *corev1.ContainerStatus, first bool) {
		s.Ready, s.State = false, Terminated(0, at)
		if early {
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
		}
		if c.Name == container {
			s.State = Terminated(exit, at)
			early = first && !jobspec.Sidecar(c) && exit != 0
		}
	})
}

// Terminated is the state of a container that ended at a time, after a second.
func Terminated(exit int32, at time.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: exit, StartedAt: metav1.NewTime(at.Add(-time.Second)), FinishedAt: metav1.NewTime(at),
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
