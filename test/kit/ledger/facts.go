package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// OwnedBy reports whether a Job controls a pod.
func OwnedBy(pod *corev1.Pod, uid types.UID) bool { return controllerOf(pod) == uid }

// controllerOf is the UID of a pod's controller; empty if it has none.
func controllerOf(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.UID
	}
	return ""
}

// controls reports whether a Job controls a pod. An owner reference means an object of its own
// namespace (I8).
func controls(job *batchv1.Job, pod *corev1.Pod) bool {
	return OwnedBy(pod, job.UID) && pod.Namespace == job.Namespace
}

// Held reports whether a pod has the tracking finalizer.
func Held(pod *corev1.Pod) bool {
	return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// Ended reports whether a pod has succeeded or failed.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsTrue reports whether a Job has a condition that is true.
func IsTrue(job *batchv1.Job, conditionType batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == conditionType && c.Status == corev1.ConditionTrue
	})
}

// IsFinished reports whether a Job is complete or failed.
func IsFinished(job *batchv1.Job) bool {
	return IsTrue(job, batchv1.JobComplete) || IsTrue(job, batchv1.JobFailed)
}

// Describe is a status in one line.
func Describe(job *batchv1.Job) string {
	var conditions []string
	for _, c := range job.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s(%s)", c.Type, c.Status, c.Reason))
	}
	s := job.Status
	succeeded, failed := 0, 0
	if s.UncountedTerminatedPods != nil {
		succeeded, failed = len(s.UncountedTerminatedPods.Succeeded), len(s.UncountedTerminatedPods.Failed)
	}
	return fmt.Sprintf("active=%d ready=%d terminating=%d succeeded=%d+%d failed=%d+%d completedIndexes=%q failedIndexes=%q conditions=[%s]",
		s.Active, ptr.Deref(s.Ready, 0), ptr.Deref(s.Terminating, 0), s.Succeeded, succeeded, s.Failed, failed,
		s.CompletedIndexes, ptr.Deref(s.FailedIndexes, ""), strings.Join(conditions, " "))
}

// IsIndexed reports whether the pods of a Job have indexes.
func IsIndexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
}

func indexOf(pod *corev1.Pod) string { return pod.Annotations[batchv1.JobCompletionIndexAnnotation] }

func parseIndex(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err
}
