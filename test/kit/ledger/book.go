package ledger

import (
	"fmt"
	"maps"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/engine/indexset"
)

// A Book is told each write of Jobs and pods in the order in which they were stored, and says
// which of them break an invariant of ARCHITECTURE.md. It holds all writers to them: who tells it
// what others may write ignores the problems that it finds then.
type Book struct {
	jobs map[types.UID]*account
	pods map[types.UID]*corev1.Pod
	// ever are all Jobs that were ever entered, and taken is how often each step was taken.
	ever  map[types.UID]bool
	taken map[Step]int
	// jobPasts and podPasts are what was ever stored, by UID.
	jobPasts map[types.UID]*jobPast
	podPasts map[types.UID]*podPast
	rivals   bool
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
	return &Book{
		jobs: map[types.UID]*account{}, pods: map[types.UID]*corev1.Pod{}, ever: map[types.UID]bool{}, taken: map[Step]int{},
		jobPasts: map[types.UID]*jobPast{}, podPasts: map[types.UID]*podPast{},
	}
}

// Rivals says that several controllers act on the same Jobs at once. Such a one may create a pod before it sees that a pod of another
// one has ended. So it may see more active pods than ever were active, but not more than there ever were.
func (b *Book) Rivals() { b.rivals = true }

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
	IndexGone       Kind = "a completed index that the Job asks for went away"
	NoStep          Kind = "the write is no step of the specification"
	AdoptedOwned    Kind = "a pod is adopted that has a controller"
	AdoptedUnheld   Kind = "a pod is adopted without the tracking finalizer, and its end could go uncounted"
	NeverAJob       Kind = "a pod is created for a Job that never was"
	CreatedUnheld   Kind = "a pod is created without the tracking finalizer, and its end could go uncounted"
	ReleasedTooSoon Kind = "a pod that had ended was released before the status accounts for it"

	ReleasedWanted   Kind = "a pod that may still run was released, and nothing ever asked for its end"
	ReleasedForeign  Kind = "a pod of another controller was released"
	DeletedHeld      Kind = "a pod was deleted with its finalizer before a verdict is written, and the deletion may count as a failure"
	DeletedWanted    Kind = "a pod that may still run was deleted, and nothing ever asked for its end"
	DeletedEnded     Kind = "a pod that had ended by itself was deleted, and nothing ever asked for its end"
	DeletedUncounted Kind = "a finished pod was deleted that the status still has to count"
	DeletedForeign   Kind = "a pod was deleted that no Job ever controlled"
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
func (p Problem) Rule() string {
	_, rule := p.guard()
	return rule
}

// Step is the step that the write may not be.
func (p Problem) Step() Step {
	step, _ := p.guard()
	return step
}

// String says what is wrong, with the facts.
func (p Problem) String() string { return fmt.Sprintf("%s: %s", p.Kind, p.detail) }

// Job enters a version of a Job.
func (b *Book) Job(job *batchv1.Job) []Problem {
	a := b.jobs[job.UID]
	if a == nil {
		a = &account{job: &batchv1.Job{}, counted: map[types.UID]bool{}}
		b.jobs[job.UID], b.ever[job.UID] = a, true
		for uid, pod := range b.pods {
			if OwnedBy(pod, job.UID) {
				b.rememberPod(uid, pod, pod)
			}
		}
	}
	c := &change{book: b, wasJob: a.job, job: job, was: uncounted(a.job), is: uncounted(job), counted: a.counted}
	a.job = job
	problems := b.take(c, ofStatus)
	b.jobPastOf(job.UID).remember(job)
	for _, uid := range missing(c.was, c.is) {
		a.counted[uid] = true
	}
	for i := range problems {
		problems[i].Job = job
		problems[i].detail += fmt.Sprintf("; was %s; is %s", Describe(c.wasJob), Describe(job))
	}
	return problems
}

// take takes the steps of a write, and says which guards do not hold.
func (b *Book) take(c *change, specification []row) (problems []Problem) {
	check := func(guards []guard) {
		for _, g := range guards {
			for _, f := range g.broken(c) {
				problems = append(problems, Problem{Kind: g.kind, Pod: f.pod, detail: f.detail})
			}
		}
	}
	for _, r := range specification {
		if r.effect(c) {
			b.taken[r.step]++
		}
		check(r.guards)
	}
	check([]guard{{MoreReady, "I5", (*change).moreReady}, {NoStep, "I2", (*change).unexplained}})
	return problems
}

// Taken is how often each step was taken, by whomever.
func (b *Book) Taken() map[Step]int { return maps.Clone(b.taken) }

// JobAfterGap enters a version of a Job after versions that nobody saw. Only later versions are held
// against it.
func (b *Book) JobAfterGap(job *batchv1.Job) {
	b.jobPastOf(job.UID).remember(job)
	if a := b.jobs[job.UID]; a != nil {
		a.job = job
		return
	}
	b.ever[job.UID] = true
	b.jobs[job.UID] = &account{job: job, counted: map[types.UID]bool{}}
}

// JobGone strikes a Job out.
func (b *Book) JobGone(uid types.UID) {
	b.jobPastOf(uid).gone = true
	delete(b.jobs, uid)
}

// Pod enters a version of a pod, whoever wrote it.
func (b *Book) Pod(pod *corev1.Pod) []Problem { return b.pod(pod.UID, pod, false) }

// PodGone strikes a pod out. If it was deleted and waited only for its finalizer, its end is its release.
func (b *Book) PodGone(uid types.UID) []Problem { return b.pod(uid, nil, false) }

// ControllerPod enters a version of a pod that a controller of Jobs has written; nil: the pod is gone. Controllers must keep to
// the steps of pods.
func (b *Book) ControllerPod(uid types.UID, pod *corev1.Pod) []Problem { return b.pod(uid, pod, true) }

func (b *Book) pod(uid types.UID, pod *corev1.Pod, controller bool) []Problem {
	c := &change{book: b, controller: controller, wasPod: b.pods[uid], pod: pod}
	if c.last() == nil {
		return nil
	}
	if pod == nil {
		delete(b.pods, uid)
	} else {
		b.pods[uid] = pod
	}
	problems := b.take(c, ofPod)
	b.rememberPod(uid, c.wasPod, pod)
	for i := range problems {
		if a := b.jobs[controllerOf(c.last())]; a != nil {
			problems[i].Job = a.job
		} else {
			problems[i].Job = &batchv1.Job{}
		}
	}
	return problems
}

// NamespaceGoes says that the deletion of the namespace is requested. Its pods need not count any more.
func (b *Book) NamespaceGoes(at time.Time) { b.namespaceGone = at }

func (b *Book) name(uid types.UID) string {
	if pod := b.pods[uid]; pod != nil {
		return pod.Name
	}
	return string(uid)
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
