package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/executor/wire"
)

// A Book is told each write of Jobs and pods in the order in which they were stored, and says
// which of them break an invariant of ARCHITECTURE.md. It holds all writers to them: who tells it
// what others may write ignores the problems that it finds then.
type Book struct {
	jobs map[types.UID]*account
	pods map[types.UID]*corev1.Pod
	// namespaceGone is when the deletion of the namespace was requested; zero: it was not.
	namespaceGone time.Time
}

// An account is the newest version of a Job, and the pods that its statuses have counted.
type account struct {
	job     *batchv1.Job
	counted map[types.UID]bool
}

// NewBook returns a Book of an empty cluster.
func NewBook() *Book {
	return &Book{jobs: map[types.UID]*account{}, pods: map[types.UID]*corev1.Pod{}}
}

// A Kind is what is wrong.
type Kind string

// The kinds of problems.
const (
	MoreReady       Kind = "more pods are ready than active"
	RecordedTwice   Kind = "a pod is recorded twice"
	RecordedAgain   Kind = "a pod is recorded again after it was counted, and each pod counts once"
	CountedHolder   Kind = "a pod is counted while it holds the finalizer, and it is counted when that is gone"
	WrongFailed     Kind = "failed grew by another number than pods left the list"
	WrongSucceeded  Kind = "succeeded grew by another number than pods left the list"
	WrongIndexes    Kind = "succeeded is not the number of completed indexes"
	IndexTwice      Kind = "an index is completed and failed"
	ConditionGone   Kind = "a condition went away, and conditions stay"
	BothEnds        Kind = "the Job succeeds and fails"
	NoInterim       Kind = "the terminal condition has no interim condition before it"
	EndWithPods     Kind = "the Job is finished with pods that are active, terminating or uncounted"
	EndBeforePod    Kind = "the Job is finished before a pod has ended and is released"
	ReleasedTooSoon Kind = "a pod that had ended was released before the status accounts for it"
)

// A Problem is an invariant that a write breaks.
type Problem struct {
	Kind
	// Job is the Job whose status, or whose pod, it is about.
	Job *batchv1.Job
	// Pod is the pod that it is about; empty: none.
	Pod    types.UID
	detail string
}

// Rule is the number of the invariant, such as "I2".
func (p Problem) Rule() string { return guards[p.Kind].rule }

// Step is the step that the write may not be.
func (p Problem) Step() Step { return guards[p.Kind].step }

// String says what is wrong, with the facts.
func (p Problem) String() string { return fmt.Sprintf("%s: %s", p.Kind, p.detail) }

// Job enters a version of a Job.
func (b *Book) Job(job *batchv1.Job) []Problem {
	a := b.jobs[job.UID]
	if a == nil {
		a = &account{job: &batchv1.Job{}, counted: map[types.UID]bool{}}
		b.jobs[job.UID] = a
	}
	previous := a.job
	a.job = job
	var found problems
	found.counts(previous, job)
	found.conditions(previous, job)
	b.ledger(&found, previous, a)
	b.end(&found, previous, job)
	for i := range found {
		found[i].Job = job
		found[i].detail += fmt.Sprintf("; was %s; is %s", Describe(previous), Describe(job))
	}
	return found
}

// JobAfterGap enters a version of a Job after versions that nobody saw. Only later versions are held
// against it.
func (b *Book) JobAfterGap(job *batchv1.Job) {
	if a := b.jobs[job.UID]; a != nil {
		a.job = job
		return
	}
	b.jobs[job.UID] = &account{job: job, counted: map[types.UID]bool{}}
}

// JobGone strikes a Job out.
func (b *Book) JobGone(uid types.UID) { delete(b.jobs, uid) }

// Pod enters a version of a pod.
func (b *Book) Pod(pod *corev1.Pod) []Problem {
	previous := b.pods[pod.UID]
	b.pods[pod.UID] = pod
	if previous == nil || !Held(previous) || Held(pod) {
		return nil
	}
	return b.release(previous, pod)
}

// PodGone strikes a pod out. If it was deleted and waited only for its finalizer, its end is its release.
func (b *Book) PodGone(uid types.UID) []Problem {
	previous := b.pods[uid]
	delete(b.pods, uid)
	if previous == nil || !Held(previous) {
		return nil
	}
	return b.release(previous, previous)
}

// NamespaceGoes says that the deletion of the namespace is requested. Its pods need not count any more.
func (b *Book) NamespaceGoes(at time.Time) { b.namespaceGone = at }

type problems []Problem

func (p *problems) add(kind Kind, pod types.UID, format string, args ...any) {
	*p = append(*p, Problem{Kind: kind, Pod: pod, detail: fmt.Sprintf(format, args...)})
}

// counts: ready pods are active, and an Indexed Job counts its completed indexes.
func (p *problems) counts(previous, job *batchv1.Job) {
	s := &job.Status
	if ptr.Deref(s.Ready, 0) > s.Active {
		p.add(MoreReady, "", "%d are ready, %d active", ptr.Deref(s.Ready, 0), s.Active)
	}
	if !IsIndexed(job) {
		return
	}
	completed := Indexes(s.CompletedIndexes)
	if n := completed.Len(); int64(s.Succeeded) != n && s.Succeeded != previous.Status.Succeeded {
		p.add(WrongIndexes, "", "%d indexes are completed", n)
	}
	if both := completed.Intersect(Indexes(ptr.Deref(s.FailedIndexes, ""))); !both.Empty() {
		p.add(IndexTwice, "", "index %d", both.Ranges()[0].First)
	}
}

// started is our condition that a pod of the Job has run. It begins anew when the Job resumes.
const started batchv1.JobConditionType = "jobpolicy.dev/Started"

// conditions: none goes away; the terminal one follows its interim one and excludes the other (I4).
func (p *problems) conditions(previous, job *batchv1.Job) {
	resumes := IsTrue(previous, batchv1.JobSuspended) && !IsTrue(job, batchv1.JobSuspended)
	for _, had := range previous.Status.Conditions {
		kept := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == had.Type })
		final := had.Type != batchv1.JobSuspended && !(had.Type == started && resumes) && had.Status == corev1.ConditionTrue
		if !kept || (final && !IsTrue(job, had.Type)) {
			p.add(ConditionGone, "", "%s", had.Type)
		}
	}
	succeeds := IsTrue(job, batchv1.JobComplete) || IsTrue(job, batchv1.JobSuccessCriteriaMet)
	if succeeds && (IsTrue(job, batchv1.JobFailed) || IsTrue(job, batchv1.JobFailureTarget)) {
		p.add(BothEnds, "", "conditions exclude each other")
	}
	for terminal, interim := range map[batchv1.JobConditionType]batchv1.JobConditionType{
		batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget,
	} {
		if IsTrue(job, terminal) && !IsTrue(previous, terminal) && !IsTrue(previous, interim) {
			p.add(NoInterim, "", "%s without %s before it", terminal, interim)
		}
	}
}

// ledger: a UID is recorded once, in one list (I3). It leaves the list for the counter after its
// finalizer is gone (I2), or when the pod no longer belongs to the Job.
func (b *Book) ledger(p *problems, previous *batchv1.Job, a *account) {
	before, now := uncounted(previous), uncounted(a.job)
	for _, uid := range slices.Sorted(maps.Keys(now)) {
		list := now[uid]
		if strings.Contains(list, "+") || (before[uid] != "" && before[uid] != list) {
			p.add(RecordedTwice, uid, "pod %s as %s, before as %q", b.name(uid), list, before[uid])
		}
		if a.counted[uid] && before[uid] == "" {
			p.add(RecordedAgain, uid, "pod %s", b.name(uid))
		}
	}
	moved := map[string]int32{}
	for _, uid := range slices.Sorted(maps.Keys(before)) {
		if now[uid] != "" {
			continue
		}
		moved[before[uid]]++
		a.counted[uid] = true
		if pod := b.pods[uid]; pod != nil && Held(pod) && controls(a.job, pod) {
			p.add(CountedHolder, uid, "pod %s", pod.Name)
		}
	}
	if grown := a.job.Status.Failed - previous.Status.Failed; grown != moved["failed"] {
		p.add(WrongFailed, "", "by %d, and %d left", grown, moved["failed"])
	}
	if grown := a.job.Status.Succeeded - previous.Status.Succeeded; !IsIndexed(a.job) && grown != moved["succeeded"] {
		p.add(WrongSucceeded, "", "by %d, and %d left", grown, moved["succeeded"])
	}
}

func (b *Book) name(uid types.UID) string {
	if pod := b.pods[uid]; pod != nil {
		return pod.Name
	}
	return string(uid)
}

// end: when a Job is finished, its pods have ended, and are released and counted.
func (b *Book) end(p *problems, previous, job *batchv1.Job) {
	if !IsFinished(job) || IsFinished(previous) {
		return
	}
	s := job.Status
	if n := len(uncounted(job)); s.Active != 0 || ptr.Deref(s.Ready, 0) != 0 || ptr.Deref(s.Terminating, 0) != 0 || n != 0 {
		p.add(EndWithPods, "", "%d are uncounted", n)
	}
	for _, uid := range slices.Sorted(maps.Keys(b.pods)) {
		if pod := b.pods[uid]; controls(job, pod) && (Held(pod) || !Ended(pod)) && !takenAsFailed(job, pod) {
			p.add(EndBeforePod, uid, "pod %s is %s with finalizers %v", pod.Name, pod.Status.Phase, pod.Finalizers)
		}
	}
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

// release: an ended pod is released only after the Job's status accounts for it (I1). Exceptions
// are failures that a policy may ignore, pods that are deleted because the Job has succeeded without
// them, and pods that are deleted with their Job or namespace.
func (b *Book) release(previous, released *corev1.Pod) []Problem {
	owner := controllerOf(previous)
	a := b.jobs[owner]
	if a == nil || !controls(a.job, previous) || !Ended(released) || a.job.DeletionTimestamp != nil || IsFinished(a.job) {
		return nil
	}
	deleted := released.DeletionTimestamp
	switch _, recorded := uncounted(a.job)[released.UID]; {
	case recorded || completedIndex(a.job, released):
	case released.Status.Phase == corev1.PodFailed && a.job.Spec.PodFailurePolicy != nil:
	case deleted != nil && IsTrue(a.job, batchv1.JobSuccessCriteriaMet):
	case deleted != nil && !b.namespaceGone.IsZero() && !deleted.Time.Before(b.namespaceGone.Truncate(time.Second)):
	default:
		return []Problem{{Kind: ReleasedTooSoon, Job: a.job, Pod: released.UID, detail: fmt.Sprintf("pod %s (%s): %s", released.Name, released.Status.Phase, Describe(a.job))}}
	}
	return nil
}

// uncounted says in which list each UID stands. One that stands twice has two names.
func uncounted(job *batchv1.Job) map[types.UID]string {
	lists := map[types.UID]string{}
	if job.Status.UncountedTerminatedPods == nil {
		return lists
	}
	enter := func(uids []types.UID, list string) {
		for _, uid := range uids {
			if lists[uid] != "" {
				lists[uid] += "+"
			}
			lists[uid] += list
		}
	}
	enter(job.Status.UncountedTerminatedPods.Succeeded, "succeeded")
	enter(job.Status.UncountedTerminatedPods.Failed, "failed")
	return lists
}

// completedIndex reports whether a status lists the index of a pod as completed.
func completedIndex(job *batchv1.Job, pod *corev1.Pod) bool {
	return !Indexes(job.Status.CompletedIndexes).Intersect(Indexes(indexOf(pod))).Empty()
}

// Indexes reads a set of indexes as statuses have it, such as "1,3-5". What is no number is left out.
func Indexes(text string) indexset.Set {
	var ranges []indexset.Range
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := parseIndex(from)
		last, err2 := parseIndex(to)
		if err1 == nil && err2 == nil {
			ranges = append(ranges, indexset.Range{First: first, Last: last})
		}
	}
	set, _ := indexset.FromRanges(ranges)
	return set
}
