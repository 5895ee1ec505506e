package tracker

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// Policy is the part of the Job's spec that the tracker needs.
type Policy struct {
	// Indexed: pods have a completion index.
	Indexed bool
	// Completions is how many indexes an Indexed Job has. Pods of higher indexes do not
	// count for the retry delay.
	Completions int32
	// LimitedPerIndex: failures are limited per index.
	LimitedPerIndex bool
	// ReplaceFailedOnly: a pod that is being deleted counts as failed only when it has
	// ended.
	ReplaceFailedOnly bool
	// Failures is the Job's pod failure policy; nil if it has none.
	Failures *batchv1.PodFailurePolicy
	// Matches is the Job's selector; nil matches every pod. A pod of the Job that does
	// not match is a stray: it counts nowhere and is disowned.
	Matches func(*podcache.Pod) bool
}

// share is a pod's share in the Job's counts.
type share struct {
	active, ready, terminating, trackedActive, unaccounted, stray bool

	index    int32
	restarts int64
}

// actsAs reports whether the difference changes at most the number of ready pods. For an
// unaccounted pod every detail matters.
func (s share) actsAs(before share) bool {
	before.ready = s.ready
	return s == before && !s.unaccounted
}

// settle computes a record's share and adds it to the counts. first says that the pod was
// not known before.
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

// unsettle subtracts a record's share from the counts.
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
	ended, deleting, tracked := r.pod.Ended(), r.deleting(), r.pod.HasTrackingFinalizer
	s := share{
		active:      !ended && !deleting,
		terminating: !ended && deleting,
		unaccounted: tracked && (ended || deleting),
		index:       NoIndex,
		restarts:    r.pod.Restarts,
	}
	s.ready = s.active && r.pod.Ready
	s.trackedActive = s.active && tracked
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

// learn adds a finished pod to the retry facts. A pod with the finalizer counts. A pod
// without it counts if it failed by itself, or if it had succeeded before this process saw
// it. A pod that was released and then deleted has not failed.
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
