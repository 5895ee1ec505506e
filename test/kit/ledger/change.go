package ledger

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
)

// A change is one write of a Job's status or of a pod: what was stored before it and after it.
type change struct {
	book *Book
	// controller: it is known that a controller of Jobs wrote it. Nobody else has to keep to the steps of pods.
	controller bool

	// wasJob and job are the versions of a Job; nil if the write is of a pod. was and is say in which list each
	// UID stands. counted are the pods that the Job's statuses have counted before.
	wasJob, job *batchv1.Job
	was, is     map[types.UID]string
	counted     map[types.UID]bool

	// wasPod and pod are the versions of a pod; nil: it did not exist, or is gone.
	wasPod, pod *corev1.Pod
}

// A finding is where a guard does not hold.
type finding struct {
	pod    types.UID
	detail string
}

func found(pod types.UID, format string, args ...any) []finding {
	return []finding{{pod, fmt.Sprintf(format, args...)}}
}

// What steps a status takes.

func (c *change) turns(kinds ...batchv1.JobConditionType) bool {
	return slices.ContainsFunc(kinds, func(kind batchv1.JobConditionType) bool { return IsTrue(c.job, kind) && !IsTrue(c.wasJob, kind) })
}

func (c *change) declares() bool {
	return c.turns(batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget)
}

func (c *change) finishes() bool { return c.turns(batchv1.JobComplete, batchv1.JobFailed) }

func (c *change) records() bool { return len(missing(c.is, c.was)) > 0 }

func (c *change) counts() bool { return len(missing(c.was, c.is)) > 0 }

// missing are the UIDs of one status that another does not list, sorted.
func missing(of, in map[types.UID]string) (uids []types.UID) {
	for _, uid := range slices.Sorted(maps.Keys(of)) {
		if in[uid] == "" {
			uids = append(uids, uid)
		}
	}
	return uids
}

func (c *change) completesIndexes() bool {
	return IsIndexed(c.job) && !Indexes(c.job.Status.CompletedIndexes).Minus(Indexes(c.wasJob.Status.CompletedIndexes)).Empty()
}

// What steps a write of a pod takes.

// releases reports whether the finalizer goes. If a deleted pod waits only for that, its end is its release.
func (c *change) releases() bool {
	return c.wasPod != nil && Held(c.wasPod) && (c.pod == nil || !Held(c.pod))
}

// last is the pod as the write leaves it.
func (c *change) last() *corev1.Pod {
	if c.pod == nil {
		return c.wasPod
	}
	return c.pod
}

// owner is the stored Job that controlled the pod before the write; nil if there is none.
func (c *change) owner() *batchv1.Job {
	a := c.book.jobs[controllerOf(c.wasPod)]
	if a == nil || !controls(a.job, c.wasPod) {
		return nil
	}
	return a.job
}

func (c *change) releasesEnded() bool {
	return c.releases() && c.owner() != nil && Ended(c.last())
}

func (c *change) releasesRunning() bool { return c.releases() && c.owner() != nil && !Ended(c.last()) }

func (c *change) releasesOrphan() bool { return c.releases() && c.owner() == nil }

func (c *change) adopts() bool {
	return c.wasPod != nil && c.pod != nil && controllerOf(c.pod) != "" && controllerOf(c.pod) != controllerOf(c.wasPod)
}

// disowns reports whether a Job gives up a pod that its selector does not match any more. The model has no selectors.
func (c *change) disowns() bool {
	return c.wasPod != nil && c.pod != nil && controllerOf(c.wasPod) != "" && controllerOf(c.pod) == ""
}

func (c *change) creates() bool { return c.wasPod == nil && c.pod != nil }

func (c *change) deletes() bool {
	return c.wasPod != nil && c.wasPod.DeletionTimestamp == nil && (c.pod == nil || c.pod.DeletionTimestamp != nil)
}

// unexplained: what a write changes, one of its steps changes. A Job that asks for fewer indexes than before loses the others.
func (c *change) unexplained() []finding {
	rows, may := ofStatus, slices.Clone(beside)
	if c.job == nil {
		rows, may = ofPod, nil
		if c.disowns() {
			may = []string{"owner", "finalizer"}
		}
	} else if lost := Indexes(c.wasJob.Status.CompletedIndexes).Minus(Indexes(c.job.Status.CompletedIndexes)); IsIndexed(c.job) && (!lost.Empty() || c.wasJob.Generation != c.job.Generation) {
		may = append(may, "completedIndexes", "succeeded")
	}
	for _, r := range rows {
		if r.effect(c) {
			may = append(may, r.parts...)
		}
	}
	var all []finding
	for _, part := range c.changedParts() {
		if !slices.Contains(may, part) {
			all = append(all, finding{c.podUID(), fmt.Sprintf("it changes %s", part)})
		}
	}
	return all
}

func (c *change) podUID() types.UID {
	if c.job != nil {
		return ""
	}
	return c.last().UID
}

// changedParts are the parts of the object that a write changes. Of a pod that nobody is known to have written, only those that
// steps are about can be told.
func (c *change) changedParts() []string {
	if c.job != nil {
		return changedStatus(&c.wasJob.Status, &c.job.Status, len(missing(c.is, c.was))+len(missing(c.was, c.is)) > 0)
	}
	if !c.controller || c.wasPod == nil || c.pod == nil {
		return nil
	}
	return changedPod(c.wasPod, c.pod)
}

// changedStatus names the fields of a status that differ, conditions by their types.
func changedStatus(was, is *batchv1.JobStatus, lists bool) (parts []string) {
	before, after := reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem()
	for i := range before.NumField() {
		name, _, _ := strings.Cut(before.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case name == "uncountedTerminatedPods":
			if lists {
				parts = append(parts, name)
			}
		case name == "conditions":
			parts = append(parts, changedConditions(was.Conditions, is.Conditions)...)
		case !equality.Semantic.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()):
			parts = append(parts, name)
		}
	}
	return parts
}

func changedConditions(was, is []batchv1.JobCondition) (parts []string) {
	for _, c := range is {
		if !slices.ContainsFunc(was, func(b batchv1.JobCondition) bool { return equality.Semantic.DeepEqual(b, c) }) {
			parts = append(parts, "conditions["+string(c.Type)+"]")
		}
	}
	return parts
}

// changedPod names what differs between two versions of a pod.
func changedPod(was, is *corev1.Pod) (parts []string) {
	if Held(was) != Held(is) {
		parts = append(parts, "finalizer")
	}
	if controllerOf(was) != controllerOf(is) {
		parts = append(parts, "owner")
	}
	if (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) {
		parts = append(parts, "deletion")
	}
	before, after := was.DeepCopy(), is.DeepCopy()
	for _, pod := range []*corev1.Pod{before, after} {
		pod.ResourceVersion, pod.Generation, pod.ManagedFields, pod.OwnerReferences = "", 0, nil, nil
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
		pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return f == batchv1.JobTrackingFinalizer })
	}
	if !equality.Semantic.DeepEqual(before, after) {
		parts = append(parts, "what no step is about")
	}
	return parts
}

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
	lost := Indexes(c.wasJob.Status.CompletedIndexes).Minus(Indexes(c.job.Status.CompletedIndexes)).Below(ptr.Deref(c.job.Spec.Completions, 0))
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
