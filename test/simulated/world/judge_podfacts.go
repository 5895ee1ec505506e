package world

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a pod says about itself, as upstream reads it.

func flips(first, next *corev1.Pod) bool {
	return first != nil && next != nil && first.Status.Phase != next.Status.Phase
}

// holds reports whether a pod has the tracking finalizer. A nil pod does not.
func holds(pod *corev1.Pod) bool {
	return pod != nil && slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// controllerUID is the UID of the Job that controls a pod; empty if none does.
func controllerUID(pod *corev1.Pod) types.UID {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != "Job" {
		return ""
	}
	return referredUID(pod, ref)
}

// referredUID is the UID of the object that an owner reference names. It is in the namespace of
// the object that has the reference, whatever UID that is.
func referredUID(from metav1.Object, ref *metav1.OwnerReference) types.UID {
	if from.GetNamespace() == elsewhere {
		return "none/" + ref.UID
	}
	return ref.UID
}

// podIndex is the index for which a pod was made. Its host name says it, if it was made for the Job that
// controls it. The annotation can be edited.
func podIndex(pod *corev1.Pod) int32 {
	if job := metav1.GetControllerOfNoCopy(pod); job != nil {
		var ix int32
		if n, _ := fmt.Sscanf(pod.Spec.Hostname, job.Name+"-%d", &ix); n == 1 {
			return ix
		}
	}
	ix, err := strconv.ParseInt(pod.Annotations[batchv1.JobCompletionIndexAnnotation], 10, 32)
	if err != nil || ix < 0 {
		return noIndex
	}
	return int32(ix)
}

// countOf reads a count annotation; 0 if it is absent or not a count.
func countOf(pod *corev1.Pod, annotation string) int32 {
	n, err := strconv.ParseInt(pod.Annotations[annotation], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

func restarts(pod *corev1.Pod) (n int64) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			n += int64(max(0, statuses[i].RestartCount))
		}
	}
	return n
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// disrupted reports whether something outside of the pod ended it.
func disrupted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// finishTime is when a pod ended by its own account, as upstream reads it: from its
// containers, else when it became unready, else its deletion, else its creation.
func finishTime(pod *corev1.Pod) time.Time {
	if at := containersEnd(pod); !at.IsZero() {
		return at
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	if pod.DeletionTimestamp == nil {
		return pod.CreationTimestamp.Time
	}
	at := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// containersEnd is when the last container ended; zero if one of them does not say
// when.
func containersEnd(pod *corev1.Pod) (last time.Time) {
	for i := range pod.Status.ContainerStatuses {
		end := pod.Status.ContainerStatuses[i].State.Terminated
		if end == nil || end.FinishedAt.IsZero() {
			return time.Time{}
		}
		if end.FinishedAt.After(last) {
			last = end.FinishedAt.Time
		}
	}
	return last
}
