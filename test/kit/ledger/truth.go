package ledger

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A truth is what really happened to a Job's pods, by their state when they lost the
// finalizer.
type truth struct {
	succeeded, failed int32
	indexes           map[string]bool
	// unsure are pods that were deleted because the Job had succeeded: whether they
	// count depends on whether they ended first. And pods that succeeded after they were
	// deleted: the status may have recorded them as failed before that (I3).
	unsure int32
	pods   []string
}

// Unreleased names a pod of a Job that still holds the finalizer; empty if none does.
func (h *History) Unreleased(job types.UID) string {
	for _, life := range h.podsOf(job) {
		if pod := life.last(); life.gone == 0 && Held(pod) {
			return pod.Name
		}
	}
	return ""
}

// Miscounts compares the counters of a finished Job, whose pods are all released, with what
// became of its pods.
func (h *History) Miscounts(job *batchv1.Job) []string {
	var problems []string
	is, s := h.truthOf(job), job.Status
	if !within(s.Succeeded, is.succeeded, is.unsure) || !within(s.Failed, is.failed, is.unsure) {
		problems = append(problems, fmt.Sprintf("Job %s: %d pods succeeded, %d failed, %d may count; the status says %s; pods:\n%s",
			job.Name, is.succeeded, is.failed, is.unsure, Describe(job), strings.Join(is.pods, "\n")))
	}
	for index := range is.indexes {
		probe := &corev1.Pod{}
		probe.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
		if !completedIndex(job, probe) {
			problems = append(problems, fmt.Sprintf("Job %s: index %s succeeded; the status says %s", job.Name, index, Describe(job)))
		}
	}
	return problems
}

// within reports whether n lies between least and least plus more.
func within(n, least, more int32) bool { return least <= n && n <= least+more }

func (h *History) truthOf(job *batchv1.Job) truth {
	is, stopped := truth{indexes: map[string]bool{}}, h.stoppedByFailure(job.UID)
	for _, life := range h.podsOf(job.UID) {
		pod := life.last()
		is.pods = append(is.pods, describeLife(life))
		switch {
		case pod.DeletionTimestamp != nil && IsTrue(job, batchv1.JobComplete) && job.Spec.SuccessPolicy != nil:
			is.unsure++
		case pod.Status.Phase == corev1.PodSucceeded && life.deletedBeforeItEnded():
			is.unsure++
		case pod.Status.Phase == corev1.PodSucceeded && stopped[pod.UID]:
			is.failed++
		case pod.Status.Phase == corev1.PodSucceeded && IsIndexed(job):
			is.indexes[indexOf(pod)] = true
		case pod.Status.Phase == corev1.PodSucceeded:
			is.succeeded++
		case !ignored(job, pod) && (Ended(pod) || pod.DeletionTimestamp != nil):
			is.failed++
		}
	}
	is.succeeded += int32(len(is.indexes))
	return is
}

// stoppedByFailure are the pods of a Job that the status first records when it says that the Job fails, and
// as failed. The controller stops its active pods then, and they count as failed. Which pods are active
// it knows from its watch: one may have succeeded a moment before (I3).
func (h *History) stoppedByFailure(job types.UID) map[types.UID]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	stopped, before := map[types.UID]bool{}, map[types.UID]bool{}
	life := h.jobs[job]
	if life == nil {
		return stopped
	}
	for _, version := range life.versions {
		lists := version.Status.UncountedTerminatedPods
		if lists == nil {
			continue
		}
		for _, uid := range lists.Failed {
			if IsTrue(version, batchv1.JobFailureTarget) && !before[uid] {
				stopped[uid] = true
			}
			before[uid] = true
		}
		for _, uid := range lists.Succeeded {
			before[uid] = true
		}
	}
	return stopped
}

// ignored reports whether a Job's policy ignores the failure of a pod.
func ignored(job *batchv1.Job, pod *corev1.Pod) bool {
	policy := job.Spec.PodFailurePolicy
	return policy != nil && policy.Rules[0].Action == batchv1.PodFailurePolicyActionIgnore &&
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
		})
}
