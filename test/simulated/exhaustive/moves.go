package exhaustive

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/test/kit/ledger"
)

// A move is one step from a state to another.
type move struct {
	what moveKind
	who  int // The executor, or the pod.
	as   outcome
}

type moveKind int8

const (
	showJob moveKind = iota
	showPod
	answers
	sends
	reconciles
	collects // The garbage collector deletes a pod of the Job, or the Job.
	succeeds
	starts
	waits // A reconcile in which routine statuses wait.
	fails
	userDeletes
	restarts
	restartsLate
	toggles
	deletesJob
)

var moveNames = [...]string{
	"the watch shows the Job to executor", "the watch shows a pod's event to executor", "the answer reaches executor", "the API server gets the call of executor",
	"reconcile by executor", "garbage collection of pod", "success of pod", "start of pod", "reconcile in which routine statuses wait by executor", "failure of pod", "deletion by a user of pod",
	"restart of executor", "restart with an old Job of executor", "suspension or resumption", "deletion of the Job",
}

var outcomeNames = [...]string{"pending", "done", "conflict", "not found", "skipped", "done, and the answer is lost", "not done, and no answer comes", "done, the answer is lost, and the Job is read"}

func (m move) String() string {
	if m.what == sends {
		return fmt.Sprintf("%s %d: %s", moveNames[m.what], m.who, outcomeNames[m.as])
	}
	return fmt.Sprintf("%s %d", moveNames[m.what], m.who)
}

// fault reports whether a move is one that a fair run need not have.
func (m move) fault() bool { return m.what >= starts || m.as >= lost }

// moves are all steps from a state. The first ones are those that a fair run takes first.
func (w *world) moves() (list []move) {
	for e := range w.scope.Executors {
		list = w.executorMoves(list, e)
	}
	for n, v := range w.cluster.pods {
		if v.exists() {
			list = w.podMoves(list, n, v)
		}
	}
	job := w.job()
	if job == nil || ledger.IsFinished(job) {
		return list
	}
	if job.DeletionTimestamp != nil && w.existing() == [maxPods]*podVersion{} {
		list = append(list, move{what: collects, who: -1})
	}
	if w.left.toggles > 0 {
		list = append(list, move{what: toggles})
	}
	if w.left.jobDeletion {
		list = append(list, move{what: deletesJob})
	}
	return list
}

func (w *world) executorMoves(list []move, e int) []move {
	x := w.executors[e]
	if x.jobs < len(w.jobs)-1 {
		list = append(list, move{what: showJob, who: e})
	}
	if x.pods < len(w.events) {
		list = append(list, move{what: showPod, who: e})
	}
	switch {
	case x.call != nil:
		list = append(list, move{what: answers, who: e})
	case len(x.todo) > 0:
		list = w.sendMoves(list, e, x.todo[0])
	default:
		p := w.planned(x, false)
		switch {
		case p.err != nil:
			w.problem("engine: %v", p.err)
		case len(p.calls) > 0 && p.calls[0].kind <= callList:
			list = append(list, move{what: sends, who: e, as: done})
		case len(p.calls) > 0 || p.quiet != nil:
			list = append(list, move{what: reconciles, who: e})
		}
		if w.scope.Waits && p.err == nil && len(p.calls) > 0 && p.calls[0].kind > callList && w.planned(x, true).calls != nil {
			list = append(list, move{what: waits, who: e})
		}
	}
	if w.left.crashes > 0 {
		list = append(list, move{what: restarts, who: e})
		if w.scope.LateJobs && x.jobs < len(w.jobs)-1 {
			list = append(list, move{what: restartsLate, who: e})
		}
	}
	return list
}

func (w *world) sendMoves(list []move, e int, c call) []move {
	if c.kind == callCreate && w.free() >= w.scope.Pods {
		return list // The bound of pods: this run ends here for the executor.
	}
	for _, as := range w.outcomes(&c) {
		list = append(list, move{what: sends, who: e, as: as})
	}
	return list
}

func (w *world) podMoves(list []move, n int, v *podVersion) []move {
	if !v.ended() {
		list = append(list, move{what: succeeds, who: n})
		if w.left.failures > 0 {
			list = append(list, move{what: fails, who: n})
		}
		if w.scope.Starts && v.phase == corev1.PodPending && !v.deleting {
			list = append(list, move{what: starts, who: n})
		}
	}
	if !v.deleting {
		if w.left.deletions > 0 {
			list = append(list, move{what: userDeletes, who: n})
		}
		if job := w.job(); job == nil || job.DeletionTimestamp != nil {
			list = append(list, move{what: collects, who: n})
		}
	}
	return list
}

// after is the state after a move.
func (w *world) after(m move) *world {
	next := *w
	next.problems = nil
	next.take(m)
	return &next
}

func (w *world) take(m move) {
	switch m.what {
	case succeeds:
		w.changePod(m.who, endPod(corev1.PodSucceeded))
	case fails:
		w.left.failures--
		w.changePod(m.who, endPod(corev1.PodFailed))
	case starts:
		w.changePod(m.who, startPod)
	case userDeletes:
		w.left.deletions--
		w.changePod(m.who, deletePod)
	case collects:
		w.collect(m.who)
	case toggles:
		w.left.toggles--
		w.storeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(!isSuspended(job)); job.Generation++ })
	case deletesJob:
		w.left.jobDeletion = false
		w.storeJob(func(job *batchv1.Job) {
			job.DeletionTimestamp, job.Finalizers = &then, []string{metav1.FinalizerDeleteDependents}
		})
	default:
		w.act(m)
	}
}

func (w *world) collect(n int) {
	if n < 0 {
		w.storeJob(nil)
		return
	}
	w.changePod(n, deletePod)
}

// act is a step of an executor.
func (w *world) act(m move) {
	x := *w.executors[m.who]
	w.executors[m.who] = &x
	switch m.what {
	case showJob:
		x.jobs++
		o := op{kind: seeJob, job: w.jobs[x.jobs]}
		if o.job.job == nil {
			o.kind = jobGone
		}
		x.tracker = w.learn(x.tracker, o)
	case showPod:
		o := op{kind: seePod, pod: w.events[x.pods]}
		if o.pod.gone {
			o.kind = losePod
		}
		x.pods++
		x.tracker = w.learn(x.tracker, o)
	case answers:
		w.answer(&x)
	case sends:
		w.sendNext(&x, m.as)
	case reconciles, waits:
		p := w.planned(&x, m.what == waits)
		x.tracker, x.todo = w.learn(x.tracker, p.quiet...), p.calls
	case restarts, restartsLate:
		w.left.crashes--
		w.restart(&x, m.what == restartsLate)
	}
}

func (w *world) sendNext(x *executor, as outcome) {
	if len(x.todo) > 0 {
		next := x.todo[0]
		x.todo = x.todo[1:]
		w.send(x, next, as)
		return
	}
	w.send(x, w.planned(x, false).calls[0], as)
}

// restart lets an executor end and another one begin, which lists Jobs and then pods.
func (w *world) restart(x *executor, late bool) {
	x.todo, x.call, x.pods = nil, nil, len(w.events)
	if !late {
		x.jobs = len(w.jobs) - 1
	}
	x.tracker = w.nothing
	for _, v := range w.existing() {
		if v != nil {
			x.tracker = w.learn(x.tracker, op{kind: seePod, pod: v})
		}
	}
	if v := w.jobs[x.jobs]; v.job != nil {
		x.tracker = w.learn(x.tracker, op{kind: seeJob, job: v})
	}
}
