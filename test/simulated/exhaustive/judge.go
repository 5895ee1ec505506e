package exhaustive

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/kit/ledger"
)

func (w *world) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// book is a Book that knows what is stored, with the Job as it was before, and which pods were counted. pods are those
// before a release.
func (w *world) book(before *batchv1.Job, pods *[maxPods]*podVersion) *ledger.Book {
	b := ledger.NewBook()
	for _, v := range pods {
		if v.exists() {
			b.Pod(v.pod)
		}
	}
	var counted []types.UID
	for n, is := range w.counted {
		if is {
			counted = append(counted, podUID(n))
		}
	}
	if len(counted) > 0 {
		past := &batchv1.Job{ObjectMeta: before.ObjectMeta}
		b.Job(past)
		recorded := past.DeepCopy()
		recorded.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: counted}
		b.Job(recorded)
		b.Job(past)
	}
	b.JobAfterGap(before)
	return b
}

// judgeStatus holds a status to the Book. The Job need not wait for a pod that its writer did not know when it decided, because
// another executor has just created it (proof.md, assumption 5).
func (w *world) judgeStatus(c *call, before, after *jobVersion) {
	for _, p := range w.book(before.job, &w.cluster.pods).Job(after.job) {
		if p.Kind == ledger.EndBeforePod && w.scope.Executors > 1 && !c.knew[podNumber(p.Pod)] {
			continue
		}
		w.problem("%s: %s", p.Rule(), p)
	}
	for n := range w.cluster.pods {
		if before.place[n] != 0 && after.place[n] == 0 {
			w.counted[n] = true
		}
		if after.place[n] != 0 {
			w.dropped[n] = false // It is counted after all: the answer to its release was lost, and it has ended.
		}
	}
}

// judgeRelease holds the release of a pod to the Book, and remembers whether the pod is to be counted.
func (w *world) judgeRelease(before, after *podVersion) {
	job := w.jobs[len(w.jobs)-1]
	if job.job == nil {
		return
	}
	pods := w.cluster.pods
	pods[before.n] = before
	b := w.book(job.job, &pods)
	for _, p := range b.Pod(after.pod) {
		w.problem("%s: %s", p.Rule(), p)
	}
	if job.place[before.n] == 0 && !w.counted[before.n] && !(w.scope.Indexed && before.ended()) {
		w.dropped[before.n] = true
	}
}

// judgeCreation: I6, for one executor that lists the newest Job after a restart.
func (w *world) judgeCreation(c *call) {
	job := w.job()
	if w.scope.Executors > 1 || w.scope.LateJobs || job == nil {
		return
	}
	busy := int32(0)
	for _, v := range w.cluster.pods {
		terminates := w.scope.ReplaceFailed && v.exists() && !v.ended()
		if !v.active() && !terminates {
			continue
		}
		busy++
		if w.scope.Indexed && v.seen.Index == c.index {
			w.problem("I6: index %d has two pods at once", c.index)
		}
	}
	if busy >= w.scope.Parallelism {
		w.problem("I6: %d pods are there, and another one is created", busy)
	}
}

// judgeRest says what is wrong with a state in which nothing happens any more.
func (w *world) judgeRest() {
	job := w.job()
	if job == nil || job.DeletionTimestamp != nil || isSuspended(job) {
		return
	}
	if !ledger.IsFinished(job) {
		w.problem("liveness: the Job does not end: %s", ledger.Describe(job))
		return
	}
	total := int32(0)
	for n, v := range w.cluster.pods {
		if v == nil {
			continue
		}
		if v.exists() && v.held {
			w.problem("liveness: pod %d keeps its finalizer", n)
		}
		if !w.dropped[n] {
			total++
		}
	}
	if s := job.Status; !w.scope.Indexed && s.Succeeded+s.Failed != total {
		w.problem("I2: %d pods are to be counted: %s", total, ledger.Describe(job))
	}
}
