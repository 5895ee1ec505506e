package exhaustive

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/kit/ledger"
)

// This file tells again, for one call at a time, what executor/internal/api and executor/apply.go, status.go, create.go,
// delete.go and release.go do: which call a step makes, and what the tracker is told of its answer. They cannot run here,
// because they need a client and goroutines.

type callKind int8

const (
	callGet callKind = iota
	callList
	callCreate
	callDelete
	callStatus
	callRelease
)

// A call is a call of the API server: what it asks for, and its answer once the API server has seen it.
type call struct {
	kind         callKind
	n            int // The pod's number.
	index        int32
	create       wire.NewPod
	releaseFirst bool
	// as is the pod as it has to be; nil: as the tracker has it when the call is sent.
	as     *podVersion
	base   *jobVersion // The version that a status replaces.
	status *batchv1.JobStatus
	text   string // The status as a jobKey has it, with place.
	place  [maxPods]int8
	// knew are the pods that the executor knew when it decided on the status.
	knew [maxPods]bool

	outcome outcome
	job     *jobVersion
	pod     *podVersion
	pods    [maxPods]*podVersion
	rv      uint64
}

// outcome is what becomes of a call.
type outcome int8

const (
	pending  outcome = iota
	done             // The answer says that it was done.
	conflict         // The answer says that the object has changed.
	notFound
	skipped     // There was nothing to call for.
	lost        // It was done, and the answer is lost.
	lostAtAll   // It was not done, and no answer comes.
	lostAndRead // A status was written and its answer is lost; the executor reads the Job and sees it.
)

// outcomes are what may become of a call, faults only while there are some left.
func (w *world) outcomes(c *call) []outcome {
	if w.left.losses == 0 || c.kind == callGet || c.kind == callList {
		return []outcome{done}
	}
	if c.kind == callStatus {
		return []outcome{done, lost, lostAtAll, lostAndRead}
	}
	return []outcome{done, lost, lostAtAll}
}

// send lets the API server see the next call of an executor.
func (w *world) send(x *executor, c call, as outcome) {
	c.outcome = as
	var ops []op
	switch c.kind {
	case callGet:
		c.job = w.jobs[len(w.jobs)-1]
	case callList:
		ops = []op{{kind: clearMark, marks: tracker.StalePods}, {kind: listBegins}}
		c.pods, c.rv = w.existing(), w.rv
	case callCreate:
		ops = []op{{kind: createBegins, rv: uint64(c.index + 1)}}
		w.serveCreate(&c)
	case callStatus:
		ops = []op{{kind: expect, status: c.status}}
		w.serveStatus(&c)
	case callRelease:
		ops = w.serveRelease(x, &c)
	case callDelete:
		ops = w.serveDelete(x, &c)
	}
	if c.outcome >= lost {
		w.left.losses--
	}
	x.tracker, x.call = w.learn(x.tracker, ops...), &c
}

// existing are the pods that exist; nil: the pod does not.
func (w *world) existing() (pods [maxPods]*podVersion) {
	for n, v := range w.cluster.pods {
		if v.exists() {
			pods[n] = v
		}
	}
	return pods
}

func (w *world) serveCreate(c *call) {
	if c.outcome == lostAtAll {
		return
	}
	w.judgeCreation(c)
	c.pod = w.cluster.createPod(c.create.From(c.base.job), c.index)
}

func (w *world) serveStatus(c *call) {
	last := w.jobs[len(w.jobs)-1]
	switch {
	case c.outcome == lostAtAll:
		return
	case last.job == nil:
		c.outcome = notFound
		return
	case last != c.base && w.scope.Plant != StatusWithoutVersion:
		c.outcome = conflict
		return
	}
	c.job = w.storeJob(func(job *batchv1.Job) { job.Status = *c.status.DeepCopy() })
	w.judgeStatus(c, last, c.job)
}

func (w *world) serveRelease(x *executor, c *call) []op {
	seen := x.tracker.pods[c.n]
	if seen == nil || !seen.held {
		c.outcome = skipped
		return nil
	}
	w.patch(c)
	return []op{{kind: callBegins}}
}

// patch removes the finalizer of the call's pod.
func (w *world) patch(c *call) {
	v := w.cluster.pods[c.n]
	switch {
	case c.outcome == lostAtAll:
	case !v.exists():
		c.outcome = notFound
	case c.as != nil && v != c.as:
		c.outcome = conflict
	case !v.held:
		c.pod = v
	default:
		c.pod = w.changePod(c.n, releasePod)
		w.judgeRelease(v, c.pod)
	}
}

// serveDelete deletes a pod, or releases it if that comes first.
func (w *world) serveDelete(x *executor, c *call) []op {
	seen := c.as
	if seen == nil {
		seen = x.tracker.pods[c.n]
	}
	switch {
	case seen == nil:
		c.outcome = skipped
		return nil
	case c.releaseFirst && seen.held:
		if seen.ended() {
			c.outcome, c.as = skipped, seen
			return nil
		}
		c.as = seen
		w.patch(c)
		return []op{{kind: callBegins}}
	case !seen.held:
		c.as = seen // Another Job may have adopted it.
	}
	w.remove(c)
	return nil
}

func (w *world) remove(c *call) {
	v := w.cluster.pods[c.n]
	switch {
	case c.outcome == lostAtAll:
	case !v.exists():
		c.outcome = notFound
	case c.as != nil && v != c.as:
		c.outcome = conflict
	case !v.deleting:
		w.changePod(c.n, deletePod)
	}
}

// answer gives an executor the answer to its call.
func (w *world) answer(x *executor) {
	c := *x.call
	var ops []op
	rest := x.todo
	switch c.kind {
	case callGet:
		ops = heard(c.job)
	case callList:
		ops = []op{{kind: listEnds, pods: c.pods, rv: c.rv}}
	case callCreate:
		ops = []op{{kind: created, pod: c.pod}}
		if c.outcome != done {
			ops, rest = []op{{kind: creationUnknown}}, nil
		}
	case callStatus:
		ops, rest = w.heardStatus(&c, rest)
	case callRelease:
		ops, rest = w.heardRelease(&c, rest)
	case callDelete:
		ops, rest = w.heardDelete(&c, rest)
	}
	x.tracker, x.call, x.todo = w.learn(x.tracker, ops...), nil, rest
}

// heard is what the tracker is told of a Job that was read.
func heard(v *jobVersion) []op {
	if v.job == nil {
		return []op{{kind: mark, marks: tracker.NotFound}}
	}
	return []op{{kind: seeJob, job: v, source: tracker.Response}, {kind: clearMark, marks: tracker.StaleJob}}
}

func (w *world) heardStatus(c *call, rest []call) ([]op, []call) {
	stale, over := op{kind: mark, marks: tracker.StaleJob}, op{kind: expect}
	switch {
	case c.outcome == done || c.outcome == lostAndRead && w.jobs[len(w.jobs)-1] == c.job:
		return []op{{kind: seeJob, job: c.job, source: tracker.Written}, over}, rest
	case c.outcome == notFound:
		return []op{over, {kind: mark, marks: tracker.NotFound}}, nil
	}
	return []op{stale, over}, nil
}

// heardPatch is what the tracker is told of a patch of a pod.
func (w *world) heardPatch(c *call) []op {
	end := op{kind: callEnds}
	switch {
	case c.outcome == notFound || c.outcome == done && c.pod.gone:
		return []op{{kind: losePod, pod: w.cluster.pods[c.n], source: tracker.Response}, end}
	case c.outcome == done:
		return []op{{kind: seePod, pod: c.pod, source: tracker.Response}, end}
	case c.outcome != done && w.scope.Plant == LostReleaseIsDone:
		return []op{{kind: losePod, pod: w.cluster.pods[c.n], source: tracker.Response}, end}
	}
	return []op{end}
}

func (w *world) heardRelease(c *call, rest []call) ([]op, []call) {
	if c.outcome == skipped {
		return nil, rest
	}
	if c.outcome >= lost {
		rest = nil
	}
	return w.heardPatch(c), rest
}

// heardDelete: if one pod cannot be deleted, the others still are, and then the decision ends.
func (w *world) heardDelete(c *call, rest []call) (ops []op, _ []call) {
	failed := slices.DeleteFunc(slices.Clone(rest), func(c call) bool { return c.kind != callDelete })
	patched := c.releaseFirst && c.as != nil && c.as.held
	switch {
	case c.outcome == skipped && c.as != nil: // It has ended.
		return []op{{kind: mark, marks: tracker.StalePods}}, failed
	case c.outcome == skipped:
		return nil, rest
	case c.outcome == conflict:
		ops, again := w.readAgain(c)
		if patched {
			ops = append([]op{{kind: callEnds}}, ops...)
		}
		return ops, slices.Concat(again, rest)
	case c.outcome >= lost && patched:
		return []op{{kind: callEnds}}, failed
	case c.outcome >= lost:
		return nil, failed
	case patched && c.outcome == done && !c.pod.gone:
		next := *c
		next.as, next.pod, next.outcome = c.pod, nil, pending
		return w.heardPatch(c), slices.Concat([]call{next}, rest)
	case patched:
		return w.heardPatch(c), rest
	case c.outcome == notFound:
		return []op{{kind: losePod, pod: w.cluster.pods[c.n], source: tracker.Response}}, rest
	}
	return []op{{kind: podDeleted, pod: w.cluster.pods[c.n]}}, rest
}

// readAgain reads a pod that has changed, in the same step, and tries its deletion again.
func (w *world) readAgain(c *call) ([]op, []call) {
	live := w.cluster.pods[c.n]
	if !live.exists() {
		return []op{{kind: losePod, pod: live, source: tracker.Response}}, nil
	}
	next := *c
	next.as, next.pod, next.outcome = live, nil, pending
	return []op{{kind: callBegins}, {kind: seePod, pod: live, source: tracker.Response}, {kind: callEnds}}, []call{next}
}

func hasInterim(job *batchv1.Job) bool {
	return ledger.IsTrue(job, batchv1.JobSuccessCriteriaMet) || ledger.IsTrue(job, batchv1.JobFailureTarget)
}

func isSuspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }
