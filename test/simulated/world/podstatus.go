package world

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	sayLast(pod)
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

// problemReasons are the words of nodes for what keeps a container from starting.
var problemReasons = map[string]corev1.ContainerStateWaiting{
	"Image":           {Reason: "ImagePullBackOff"},
	"SecurityContext": {Reason: "CreateContainerConfigError", Message: "container has runAsNonRoot and image will run as root"},
	"Configuration":   {Reason: "CreateContainerConfigError", Message: "configmap not found"},
}

// setProblem says what keeps a pod from starting, as scheduler and kubelets do.
func setProblem(pod *corev1.Pod, problem string, now time.Time) {
	scheduled := problem != "Unschedulable"
	podstatus.SetCondition(pod, corev1.PodScheduled, scheduled, map[bool]string{false: corev1.PodReasonUnschedulable}[scheduled], now)
	if !scheduled {
		return
	}
	at := metav1.NewTime(now)
	pod.Status.Phase, pod.Status.StartTime = corev1.PodPending, &at
	podstatus.SetCondition(pod, corev1.PodReadyToStartContainers, problem != "VolumeOrSandbox", "", now)
	waiting, ok := problemReasons[problem]
	if !ok {
		waiting.Reason = "ContainerCreating"
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Waiting: &waiting}})
	}
}

// clearProblem forgets what has kept a pod from starting.
func clearProblem(pod *corev1.Pod) {
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers} {
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == condition }) {
			podstatus.SetCondition(pod, condition, true, "", time.Now())
		}
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].State.Waiting = nil
	}
}

// setNeverRan ends a pod of which no container has run, as kubelets do.
func setNeverRan(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodFailed
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}}
	}
}
