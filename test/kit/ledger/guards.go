package ledger

import (
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
)

// The guards of a status.

// moreReady: ready pods are active.
func (c *change) moreReady() []finding {
	if c.job == nil || ptr.Deref(c.job.Status.Ready, 0) <= c.job.Status.Active {
		return nil
	}
	return found("", "%d are ready, %d active", ptr.Deref(c.job.Status.Ready, 0), c.job.Status.Active)
}

// wrongIndexes: an Indexed Job counts its completed indexes.
func (c *change) wrongIndexes() []finding {
	s := &c.job.Status
	if n := Indexes(s.CompletedIndexes).Len(); IsIndexed(c.job) && int64(s.Succeeded) != n && s.Succeeded != c.wasJob.Status.Succeeded {
		return found("", "%d indexes are completed", n)
	}
	return nil
}

func (c *change) indexTwice() []finding {
	s := &c.job.Status
	if both := Indexes(s.CompletedIndexes).Intersect(Indexes(ptr.Deref(s.FailedIndexes, ""))); IsIndexed(c.job) && !both.Empty() {
		return found("", "index %d", both.Ranges()[0].First)
	}
	return nil
}

// indexGone: a completed index stays, as long as the Job asks for it.
func (c *change) indexGone() []finding {
	lost := c.lostIndexes().Below(ptr.Deref(c.job.Spec.Completions, 0))
	if !IsIndexed(c.job) || lost.Empty() {
		return nil
	}
	return found("", "index %d", lost.Ranges()[0].First)
}

// started is our condition that a pod of the Job has run. It begins anew when the Job resumes.
const started batchv1.JobConditionType = "jobpolicy.dev/Started"

// conditionsGone: none goes away, and none but Suspended changes back.
func (c *change) conditionsGone() (all []finding) {
	resumes := IsTrue(c.wasJob, batchv1.JobSuspended) && !IsTrue(c.job, batchv1.JobSuspended)
	for _, had := range c.wasJob.Status.Conditions {
		kept := slices.ContainsFunc(c.job.Status.Conditions, func(now batchv1.JobCondition) bool { return now.Type == had.Type })
		final := had.Type != batchv1.JobSuspended && !(had.Type == started && resumes) && had.Status == corev1.ConditionTrue
		if !kept || (final && !IsTrue(c.job, had.Type)) {
			all = append(all, finding{detail: string(had.Type)})
		}
	}
	return all
}

func (c *change) bothEnds() []finding {
	succeeds := IsTrue(c.job, batchv1.JobComplete) || IsTrue(c.job, batchv1.JobSuccessCriteriaMet)
	if succeeds && (IsTrue(c.job, batchv1.JobFailed) || IsTrue(c.job, batchv1.JobFailureTarget)) {
		return found("", "conditions exclude each other")
	}
	return nil
}

// noInterim: the terminal condition follows its interim one, in a later write.
func (c *change) noInterim() (all []finding) {
	for _, pair := range [][2]batchv1.JobConditionType{{batchv1.JobComplete, batchv1.JobSuccessCriteriaMet}, {batchv1.JobFailed, batchv1.JobFailureTarget}} {
		if c.turns(pair[0]) && !IsTrue(c.wasJob, pair[1]) {
			all = append(all, found("", "%s without %s before it", pair[0], pair[1])...)
		}
	}
	return all
}

// recordedTwice: a UID stands in one list, and stays there.
func (c *change) recordedTwice() (all []finding) {
	for _, uid := range slices.Sorted(maps.Keys(c.is)) {
		if list := c.is[uid]; strings.Contains(list, "+") || (c.was[uid] != "" && c.was[uid] != list) {
			all = append(all, found(uid, "pod %s as %s, before as %q", c.book.name(uid), list, c.was[uid])...)
		}
	}
	return all
}

func (c *change) recordedAgain() (all []finding) {
	for _, uid := range missing(c.is, c.was) {
		if c.counted[uid] {
			all = append(all, found(uid, "pod %s", c.book.name(uid))...)
		}
	}
	return all
}

// countedHolders: a UID leaves its list after its finalizer is gone, or when the pod no longer belongs to the Job.
func (c *change) countedHolders() (all []finding) {
	for _, uid := range missing(c.was, c.is) {
		if pod := c.book.pods[uid]; pod != nil && Held(pod) && controls(c.job, pod) {
			all = append(all, found(uid, "pod %s", pod.Name)...)
		}
	}
	return all
}

// moved is how many UIDs have left a list.
func (c *change) moved(list string) (n int32) {
	for _, uid := range missing(c.was, c.is) {
		if c.was[uid] == list {
			n++
		}
	}
	return n
}

func (c *change) wrongFailed() []finding {
	if grown := c.job.Status.Failed - c.wasJob.Status.Failed; grown != c.moved("failed") {
		return found("", "by %d, and %d left", grown, c.moved("failed"))
	}
	return nil
}

func (c *change) wrongSucceeded() []finding {
	if grown := c.job.Status.Succeeded - c.wasJob.Status.Succeeded; !IsIndexed(c.job) && grown != c.moved("succeeded") {
		return found("", "by %d, and %d left", grown, c.moved("succeeded"))
	}
	return nil
}

// ends reports whether the Job finishes with this write.
func (c *change) ends() bool { return IsFinished(c.job) && !IsFinished(c.wasJob) }

func (c *change) endWithPods() []finding {
	s := c.job.Status
	if !c.ends() || s.Active == 0 && ptr.Deref(s.Ready, 0) == 0 && ptr.Deref(s.Terminating, 0) == 0 && len(c.is) == 0 {
		return nil
	}
	return found("", "%d are uncounted", len(c.is))
}

// endBeforePods: when a Job is finished, its pods have ended and are released.
func (c *change) endBeforePods() (all []finding) {
	if !c.ends() {
		return nil
	}
	for _, uid := range slices.Sorted(maps.Keys(c.book.pods)) {
		if pod := c.book.pods[uid]; controls(c.job, pod) && (Held(pod) || !Ended(pod)) && !takenAsFailed(c.job, pod) {
			all = append(all, found(uid, "pod %s is %s with finalizers %v", pod.Name, pod.Status.Phase, pod.Finalizers)...)
		}
	}
	return all
}

// takenAsFailed reports whether a finished Job need not wait for a pod that has not ended: its deletion is
// overdue by the termination deadline in the Job's annotation, and it is released.
func takenAsFailed(job *batchv1.Job, pod *corev1.Pod) bool {
	policy, _ := wire.PolicySpec(job.Annotations)
	deadline := policy.GetJob().GetTerminationDeadlineSeconds()
	if deadline == 0 || pod.DeletionTimestamp == nil || Held(pod) {
		return false
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			// A condition has whole seconds; the decision may be up to one later.
			return pod.DeletionTimestamp.Unix()+deadline <= c.LastTransitionTime.Unix()
		}
	}
	return false
}

// The guards of a pod.

// releasedTooSoon: an ended pod is released only after the Job's status accounts for it (I1). Exceptions
// are failures that a policy may ignore, pods that are deleted because the Job has succeeded without
// them, and pods that are deleted with their Job or namespace.
func (c *change) releasedTooSoon() []finding {
	if !c.releasesEnded() || c.owner().DeletionTimestamp != nil || IsFinished(c.owner()) {
		return nil
	}
	job, released, gone := c.owner(), c.last(), c.book.namespaceGone
	deleted := released.DeletionTimestamp
	switch _, recorded := uncounted(job)[released.UID]; {
	case recorded || completedIndex(job, released):
	case released.Status.Phase == corev1.PodFailed && job.Spec.PodFailurePolicy != nil:
	case deleted != nil && IsTrue(job, batchv1.JobSuccessCriteriaMet):
	case deleted != nil && !gone.IsZero() && !deleted.Time.Before(gone.Truncate(time.Second)):
	default:
		return found(released.UID, "pod %s (%s): %s", released.Name, released.Status.Phase, Describe(job))
	}
	return nil
}

func (c *change) adoptedOwned() []finding {
	if !c.controller || !c.adopts() || controllerOf(c.wasPod) == "" {
		return nil
	}
	return found(c.pod.UID, "pod %s of %s", c.pod.Name, controllerOf(c.wasPod))
}

func (c *change) adoptedUnheld() []finding {
	if !c.controller || !c.adopts() || Held(c.pod) {
		return nil
	}
	return found(c.pod.UID, "pod %s", c.pod.Name)
}

func (c *change) neverAJob() []finding {
	if !c.controller || !c.creates() || c.book.ever[controllerOf(c.pod)] {
		return nil
	}
	return found(c.pod.UID, "pod %s of %q", c.pod.Name, controllerOf(c.pod))
}

func (c *change) createdUnheld() []finding {
	if !c.controller || !c.creates() || Held(c.pod) {
		return nil
	}
	return found(c.pod.UID, "pod %s", c.pod.Name)
}
