package world

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/simulated/podstatus"
)

func setRunning(pod *corev1.Pod, ready bool) { podstatus.SetRunning(pod, ready, time.Now()) }

// setRestarts makes the first main container have failed and restarted a few times.
func setRestarts(pod *corev1.Pod, n int32) {
	if len(pod.Status.ContainerStatuses) == 0 {
		return
	}
	s := &pod.Status.ContainerStatuses[0]
	s.RestartCount += n
	s.LastTerminationState = podstatus.Terminated(1, time.Now())
}

// setEnded ends all containers with exit code 0, except the one that the fate names. That is an
// init container in one of four, if there is one.
func setEnded(pod *corev1.Pod, phase corev1.PodPhase, f fate) {
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	which := len(pod.Spec.InitContainers) + f.container%len(pod.Spec.Containers)
	if f.container == 3 {
		which = max(0, len(pod.Spec.InitContainers)-1)
	}
	podstatus.SetEnded(pod, phase, all[which].Name, f.exit, time.Now())
}

// outOfMemory says of the containers that were killed that they had needed too much memory.
func outOfMemory(pod *corev1.Pod) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if end := statuses[i].State.Terminated; end != nil && end.ExitCode == 137 {
				end.Reason = "OOMKilled"
			}
		}
	}
}

// disrupt sets the condition that says that something outside of the pod ends it.
func disrupt(pod *corev1.Pod, reason string) {
	podstatus.SetCondition(pod, corev1.DisruptionTarget, true, reason, time.Now())
}
