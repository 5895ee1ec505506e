package tracker

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// Policy is what the tracker must know of the Job's spec.
type Policy struct {
	// Indexed: pods have a completion index.
	Indexed bool
	// Completions is how many indexes an Indexed Job asks for. A pod of another
	// index says nothing about when to try again.
	Completions int32
	// LimitedPerIndex: failures are limited by index.
	LimitedPerIndex bool
	// ReplaceFailedOnly: a pod that is being deleted has not failed before it
	// ends.
	ReplaceFailedOnly bool
	// Failures is the Job's pod failure policy, which reads how a pod failed; nil
	// if it has none.
	Failures *batchv1.PodFailurePolicy
	// Matches is the Job's selector; nil matches every pod. A pod of the Job
	// that it does not match is a stray: it is to be released and counts nowhere.
	Matches func(*podcache.Pod) bool
}

// share is a pod's share in the Job's counts.
type share struct {
	active, ready, terminating, trackedActive, unaccounted, stray bool

	index    int32
	restarts int64
}

// actsAs reports whether nothing but the number of ready pods follows from the
// difference. Of a pod that is unaccounted for, every detail counts.
func (s share) actsAs(before share) bool {
	before.ready = s.ready
	return s == before && !s.unaccounted
}

// settle works out a record's share and adds it. first says that nothing was
// known of the pod before.
func (t *Tracker) settle(r *record, first bool) {
	r.share = t.shareOf(r)
	t.count(&r.share, 1)
	if ended := r.pod.Ended(); (ended && !r.ended) || (r.endSeen.IsZero() && r.deleting()) {
		r.endSeen, r.ended = time.Now(), ended
	}
	if r.share.stray {
		t.strays[r.pod.UID] = r
		return
	}
	if r.missing() {
		return
	}
	if r.share.unaccounted {
		t.pending[r.pod.UID] = r
		t.countPending(r, 1)
		t.enqueue(r)
	}
	t.learn(r, first)
}

func (t *Tracker) unsettle(r *record) {
	t.count(&r.share, -1)
	if _, pending := t.pending[r.pod.UID]; pending {
		t.countPending(r, -1)
		delete(t.pending, r.pod.UID)
	}
	delete(t.strays, r.pod.UID)
}

func (t *Tracker) shareOf(r *record) share {
	if t.policy.Matches != nil && !t.policy.Matches(r.pod) {
		return share{stray: true, index: NoIndex}
	}
	if r.missing() {
		return share{index: NoIndex}
	}
	ended, deleting, held := r.pod.Ended(), r.deleting(), r.pod.HasTrackingFinalizer
	s := share{
		active:      !ended && !deleting,
		terminating: !ended && deleting,
		unaccounted: held && (ended || deleting),
		index:       NoIndex,
		restarts:    r.pod.Restarts,
	}
	s.ready = s.active && r.pod.Ready
	s.trackedActive = s.active && held
	if t.policy.Indexed {
		s.index = r.pod.Index
	}
	return s
}

func (t *Tracker) count(s *share, sign int32) {
	t.restarts += int64(sign) * s.restarts
	countIf(&t.active, s.active, sign)
	countIf(&t.ready, s.ready, sign)
	countIf(&t.terminating, s.terminating, sign)
	countIf(&t.trackedActive, s.trackedActive, sign)
	if s.index == NoIndex {
		return
	}
	if s.active {
		t.activeIndexes.change(s.index, sign)
	}
	if s.terminating {
		t.terminatingIndexes.change(s.index, sign)
	}
}

func (t *Tracker) countPending(r *record, sign int32) {
	countIf(&t.pendingNotEnded, !r.pod.Ended(), sign)
	of := &t.pendingOtherIndexes
	if r.pod.Phase() == corev1.PodSucceeded {
		t.pendingSucceeded += sign
		of = &t.pendingSucceededIndexes
	}
	if r.share.index != NoIndex {
		of.change(r.share.index, sign)
	}
}

func countIf(n *int32, condition bool, sign int32) {
	if condition {
		*n += sign
	}
}

func (s *indexes) change(ix, sign int32) {
	if sign > 0 {
		s.add(ix)
		return
	}
	s.remove(ix)
}

// learn takes a finished pod into the retry facts. A pod counts if it ended
// while it held the finalizer; a pod without it counts if it failed by itself, or
// had succeeded before this process knew it. A deletion that releases the pod
// first is no failure.
func (t *Tracker) learn(r *record, first bool) {
	byItself := r.pod.Ended() && !r.deleting() && (first || r.pod.Phase() == corev1.PodFailed)
	if !r.pod.HasTrackingFinalizer && !byItself {
		return
	}
	if t.policy.Indexed && (r.share.index == NoIndex || r.share.index >= t.policy.Completions) {
		return
	}
	at := finishedTime(r.pod, r.deletedAt)
	if r.pod.Phase() == corev1.PodSucceeded {
		t.facts.succeeded(at, r.endSeen)
		return
	}
	if !r.pod.Ended() && (t.policy.ReplaceFailedOnly || !r.deleting()) {
		return
	}
	fact := failure{uid: r.pod.UID, finished: at, seen: r.endSeen}
	if t.policy.Failures != nil {
		fact.details = wire.PodFailure(r.pod, t.policy.Failures)
	}
	t.facts.failed(fact)
}
