package tracker

import (
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// NoIndex stands for a pod without a usable completion index.
const NoIndex int32 = -1

// maxIndex is the highest index the contract lets an index set hold.
const maxIndex = 1<<31 - 2

// HoldsFinalizer reports whether the pod holds the tracking finalizer.
func HoldsFinalizer(pod *corev1.Pod) bool {
	return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// ResourceVersion reads a resource version, which is a decimal number that
// grows with every write. 0 means that it is unknown.
func ResourceVersion(s string) uint64 {
	rv, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return rv
}

// CompletionIndex reads the pod's completion index. NoIndex: there is none, or
// it is not a number an index may be.
func CompletionIndex(pod *corev1.Pod) int32 {
	ix, err := strconv.ParseInt(pod.Annotations[batchv1.JobCompletionIndexAnnotation], 10, 32)
	if err != nil || ix < 0 || ix > maxIndex {
		return NoIndex
	}
	return int32(ix)
}

// failureCount reads a count annotation; one that is absent or no count is 0.
func failureCount(pod *corev1.Pod, annotation string) int32 {
	n, err := strconv.ParseInt(pod.Annotations[annotation], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func readyCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	c := readyCondition(pod)
	return c != nil && c.Status == corev1.ConditionTrue
}

// restarts adds up the restarts of a pod that may still run. A count below 0,
// which the API server takes, says nothing.
func restarts(pod *corev1.Pod) int64 {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != corev1.PodRunning {
		return 0
	}
	var n int64
	for i := range pod.Status.InitContainerStatuses {
		n += max(0, int64(pod.Status.InitContainerStatuses[i].RestartCount))
	}
	for i := range pod.Status.ContainerStatuses {
		n += max(0, int64(pod.Status.ContainerStatuses[i].RestartCount))
	}
	return n
}

// finishedTime is UnaccountedPod.finished_time. deletedAt is when this process
// asked for the pod's deletion; zero if it did not.
func finishedTime(pod *corev1.Pod, deletedAt time.Time) time.Time {
	if at, ok := containersFinished(pod); ok {
		return at
	}
	if c := readyCondition(pod); c != nil && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	if pod.DeletionTimestamp != nil {
		grace := int64(0)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = *pod.DeletionGracePeriodSeconds
		}
		return pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
	}
	if !deletedAt.IsZero() {
		return deletedAt
	}
	if pod.CreationTimestamp.IsZero() {
		return time.Unix(0, 0)
	}
	return pod.CreationTimestamp.Time
}

// containersFinished is the latest end of the pod's containers, restartable
// init containers included, which end after the others. ok is false while one
// of them has no end.
func containersFinished(pod *corev1.Pod) (latest time.Time, ok bool) {
	statuses := slices.Clone(pod.Status.ContainerStatuses)
	for _, s := range pod.Status.InitContainerStatuses {
		if restartable(pod, s.Name) {
			statuses = append(statuses, s)
		}
	}
	for _, s := range statuses {
		if s.State.Terminated == nil || s.State.Terminated.FinishedAt.IsZero() {
			return time.Time{}, false
		}
		if at := s.State.Terminated.FinishedAt.Time; at.After(latest) {
			latest = at
		}
	}
	return latest, len(statuses) > 0
}

func restartable(pod *corev1.Pod, initContainer string) bool {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name == initContainer {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}

// phase maps a pod's phase; a pod that no kubelet has touched yet may have none
// and is pending.
func phase(pod *corev1.Pod) jobpolicyv1.PodPhase {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return jobpolicyv1.PodPhase_POD_PHASE_RUNNING
	case corev1.PodSucceeded:
		return jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
	case corev1.PodFailed:
		return jobpolicyv1.PodPhase_POD_PHASE_FAILED
	case corev1.PodUnknown:
		return jobpolicyv1.PodPhase_POD_PHASE_UNKNOWN
	default:
		return jobpolicyv1.PodPhase_POD_PHASE_PENDING
	}
}
