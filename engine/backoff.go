package engine

import (
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// conditionDisruptionTarget is what Kubernetes sets on a pod that it is about to
// end for reasons of its own: eviction, preemption, a lost node.
const conditionDisruptionTarget = "DisruptionTarget"

// skipsDelay reports whether the next pod need not wait because of a failure: of
// a disruption that the pod failure policy ignores, and of no other (invariant
// I12). Upstream waits for these, too (kubernetes/kubernetes#130881).
func skipsDelay(m policyMatch, f *jobpolicyv1.PodFailure) bool {
	return !m.counts() && slices.ContainsFunc(f.GetConditions(), func(c *jobpolicyv1.PodConditionPattern) bool {
		return c.GetType() == conditionDisruptionTarget && c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE
	})
}

func (r podRow) skipsDelay() bool { return skipsDelay(r.match, r.pod.GetFailure()) }

// retryDelay is how long to wait after the last of n failures in a row: base,
// doubled with each failure after the first, at most limit.
func retryDelay(n int32, base, limit time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	delay := base
	for range n - 1 {
		if delay >= limit/2 {
			return limit
		}
		delay *= 2
	}
	return min(delay, limit)
}

// retryState is what the retry delay grows with.
type retryState struct {
	// consecutive counts failed pods since the last success.
	consecutive int32
	// last is when the last of them finished.
	last time.Time
	// nextSuccess is the earliest success that lies in the future; zero if none
	// does.
	nextSuccess time.Time
}

// readRetry counts the failures after the last success, but not those of pods
// with an index that the Job does not ask for (upstream getValidPodsWithFilter,
// v1.36).
func readRetry(s *snapshot, rows []podRow) retryState {
	success, next := successTimes(s, rows)
	var fromFacts, fromRows retryState
	for _, f := range s.req.GetRetry().GetRecentFailures() {
		if at := f.GetFinishedTime().AsTime(); at.After(success) && !skipsDelay(matchFailurePolicy(s, f.GetFailure()), f.GetFailure()) {
			fromFacts.add(at)
		}
	}
	for _, r := range rows {
		if at := r.pod.GetFinishedTime().AsTime(); r.failed && r.inRange && at.After(success) && !r.skipsDelay() {
			fromRows.add(at)
		}
	}
	// The two overlap as a rule, but neither need hold all of the other.
	merged := retryState{consecutive: max(fromRows.consecutive, fromFacts.consecutive), last: fromFacts.last, nextSuccess: next}
	if fromRows.last.After(merged.last) {
		merged.last = fromRows.last
	}
	return merged
}

func (r *retryState) add(failed time.Time) {
	r.consecutive++
	if failed.After(r.last) {
		r.last = failed
	}
}

// successTimes are the last success, and the next one that lies in the future
// because clocks differ. That one does not count yet: every failure until then
// would seem to lie before it, and delay nothing.
func successTimes(s *snapshot, rows []podRow) (last, next time.Time) {
	take := func(at time.Time) {
		switch {
		case at.After(s.now) && (next.IsZero() || at.Before(next)):
			next = at
		case !at.After(s.now) && at.After(last):
			last = at
		}
	}
	if at := s.req.GetRetry().GetLastSuccessTime(); at != nil {
		take(at.AsTime())
	}
	for _, r := range rows {
		if r.succeeded && r.inRange {
			take(r.pod.GetFinishedTime().AsTime())
		}
	}
	return last, next
}

// retryTime is when pods may be created again after n failures in a row, the
// last of which ended at last. ok is false if that time has come. It depends on
// facts in the cluster only, so no restart forgets it (invariant I10).
func retryTime(s *snapshot, n int32, last time.Time) (at time.Time, ok bool) {
	at = last.Add(retryDelay(n, s.podFailureBackoff, s.maxPodFailureBackoff))
	// A pod may claim to have ended in the future, because clocks differ. It holds
	// creation back until then, as upstream has it, but is looked at again after
	// one delay.
	if latest := s.now.Add(retryDelay(n, s.podFailureBackoff, s.maxPodFailureBackoff)); at.After(latest) {
		at = latest
	}
	return at, n > 0 && at.After(s.now)
}
