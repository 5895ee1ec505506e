package podcache

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Start says whether a pod has started, and what keeps it from that. PodStartProblem describes how the pod's
// status shows a problem.
type Start struct {
	// Unstarted: no container of the pod has run, init containers included.
	Unstarted bool
	// Problem keeps the pod; unspecified: it has started, or nothing is known to keep it.
	Problem jobpolicyv1.PodStartProblem
	// Reason is what the status calls it. Empty: it has no word for it.
	Reason string
	// since is Since in seconds. Each new start of a pod has another value, so it is kept only with a problem.
	since int64
}

// Since is when the problem began, as far as the status says. There must be one.
func (s Start) Since() time.Time { return time.Unix(s.since, 0) }

// The problems by the reasons of waiting containers, in the words of the kubelet (packages images and
// kuberuntime, v1.37) and of the runtimes' CRI (package errors of cri-api).
var problemsByReason = map[string]jobpolicyv1.PodStartProblem{
	"ErrImagePull": image, "ImagePullBackOff": image, "InvalidImageName": image, "ErrImageNeverPull": image, "ImageInspectError": image,
	"RegistryUnavailable": image, "SignatureValidationFailed": image, "ImageVolumeMountFailed": image,
	configError: configuration, "CreateContainerError": configuration, "PreCreateHookError": configuration,
	"PreStartHookError": configuration, "RunContainerError": configuration,
}

const (
	unschedulable   = jobpolicyv1.PodStartProblem_POD_START_PROBLEM_UNSCHEDULABLE
	volumeOrSandbox = jobpolicyv1.PodStartProblem_POD_START_PROBLEM_VOLUME_OR_SANDBOX
	image           = jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE
	securityContext = jobpolicyv1.PodStartProblem_POD_START_PROBLEM_SECURITY_CONTEXT
	configuration   = jobpolicyv1.PodStartProblem_POD_START_PROBLEM_CONFIGURATION

	configError = "CreateContainerConfigError"
)

// nonRoot are parts of all messages with which the kubelet refuses to run a container as root (function
// verifyRunAsNonRoot, v1.37; on Windows in other words). Only the message tells that from other
// errors of the configuration.
var nonRoot = []string{"runAsNonRoot", "non-root policy"}

func startOf(pod *corev1.Pod) Start {
	if anyRan(pod) {
		return Start{}
	}
	s := Start{Unstarted: true}
	scheduled, sandbox := conditionOf(pod, corev1.PodScheduled), conditionOf(pod, corev1.PodReadyToStartContainers)
	switch {
	case scheduled != nil && scheduled.Status == corev1.ConditionFalse:
		if scheduled.Reason == corev1.PodReasonUnschedulable {
			s.Problem, s.Reason, s.since = unschedulable, scheduled.Reason, sinceOf(pod, scheduled)
		}
	case sandbox != nil && sandbox.Status == corev1.ConditionFalse:
		s.Problem, s.Reason, s.since = volumeOrSandbox, sandbox.Reason, sinceOf(pod, sandbox)
	default:
		if s.Problem, s.Reason = containerProblem(pod); s.Problem != 0 {
			s.since = sinceOf(pod, sandbox)
		}
	}
	return s
}

func conditionOf(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// anyRan reports whether a container of the pod may have run. A kubelet that ends a pod reports containers that
// never ran as ended, without the time at which they did; and in the same way those whose end it missed
// (TerminatePod, v1.37), but these have an ID.
func anyRan(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodRunning, corev1.PodSucceeded:
		return true
	}
	ran := func(s corev1.ContainerStatus) bool {
		ended := s.State.Terminated
		return s.State.Running != nil || s.RestartCount > 0 || s.LastTerminationState.Terminated != nil ||
			ended != nil && (!ended.FinishedAt.IsZero() || s.ContainerID != "")
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, ran) || slices.ContainsFunc(pod.Status.InitContainerStatuses, ran)
}

// containerProblem is that of the first container that waits for something that does not pass by itself.
func containerProblem(pod *corev1.Pod) (jobpolicyv1.PodStartProblem, string) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := s.State.Waiting
		if waiting == nil {
			continue
		}
		if problem := StartProblem(waiting); problem != 0 {
			return problem, waiting.Reason
		}
	}
	return 0, ""
}

// StartProblem is why a container waits; unspecified: nothing is known, or it passes by itself.
func StartProblem(waiting *corev1.ContainerStateWaiting) jobpolicyv1.PodStartProblem {
	if waiting.Reason == configError && slices.ContainsFunc(nonRoot, func(words string) bool { return strings.Contains(waiting.Message, words) }) {
		return securityContext
	}
	return problemsByReason[waiting.Reason]
}

// StartReasons are the reasons of waiting containers for which StartProblem knows a problem, in order.
func StartReasons() []string { return slices.Sorted(maps.Keys(problemsByReason)) }

// sinceOf is when a condition changed last, in seconds. Without the condition, or its time, it is when the node
// accepted the pod. It is never before the pod was created.
func sinceOf(pod *corev1.Pod, condition *corev1.PodCondition) int64 {
	at := pod.CreationTimestamp.Unix()
	if pod.Status.StartTime != nil {
		at = max(at, pod.Status.StartTime.Unix())
	}
	if condition != nil {
		at = max(at, condition.LastTransitionTime.Unix())
	}
	return at
}
