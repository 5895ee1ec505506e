package tracker

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
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

// share is what one pod adds to the Job's counts.
type share struct {
	active, ready, terminating, trackedActive, unaccounted, stray bool

	index    int32
	restarts int64
}

// sameButReadiness reports whether the share differs from the one before at most in readiness.
// For an unaccounted pod it is false, because every detail of such a pod matters.
func (s share) sameButReadiness(before share) bool {
	before.ready = s.ready
	return s == before && !s.unaccounted
}

// strays reports whether the Job's selector does not match a pod.
func (p *Policy) strays(pod *podcache.Pod) bool {
	return p.Matches != nil && !p.Matches(pod)
}

// shareOf is the share of a pod.
func (p *Policy) shareOf(r *record) share {
	if p.strays(r.pod) {
		return share{stray: true, index: NoIndex}
	}
	if r.missing() {
		return share{index: NoIndex}
	}
	ended, deleting, tracked := r.pod.Ended(), r.deleting(), r.pod.HasTrackingFinalizer
	s := share{
		active:      !ended && !deleting,
		terminating: !ended && deleting,
		unaccounted: tracked && (ended || r.pod.Deleting),
		index:       NoIndex,
		restarts:    r.pod.Restarts,
	}
	s.ready = s.active && r.pod.Ready
	s.trackedActive = s.active && tracked
	if p.Indexed {
		s.index = r.pod.Index
	}
	return s
}

// totals are the sums of all shares.
type totals struct {
	active, ready, terminating, trackedActive int32

	restarts                          int64
	activeIndexes, terminatingIndexes indexes
}

// add adds a share to the sums, sign times: 1 or -1.
func (t *totals) add(s *share, sign int32) {
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

func countIf(n *int32, condition bool, sign int32) {
	if condition {
		*n += sign
	}
}

func (t *totals) allReady() bool { return t.ready == t.active }

func (t *totals) summary() *jobpolicyv1.PodSummary {
	return &jobpolicyv1.PodSummary{
		Active: t.active, Ready: t.ready, Terminating: t.terminating,
		TrackedActive: t.trackedActive, Restarts: t.restarts,
		ActiveIndexes: t.activeIndexes.set(), TerminatingIndexes: t.terminatingIndexes.set(),
	}
}
