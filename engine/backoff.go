package engine

import (
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// conditionDisruptionTarget is the condition of a pod that Kubernetes ends for a
// reason outside of the pod: eviction, preemption, a lost node.
const conditionDisruptionTarget = "DisruptionTarget"

// skipsDelay reports whether a failure does not delay the next pod. That is so only
// for a disruption that the pod failure policy ignores (invariant I12). Upstream
// delays the next pod after these too (kubernetes/kubernetes#130881).
func skipsDelay(m policyMatch, f *jobpolicyv1.PodFailure) bool {
	return !m.counts() && disrupted(f)
}

func disrupted(f *jobpolicyv1.PodFailure) bool {
	return slices.ContainsFunc(f.GetConditions(), func(c *jobpolicyv1.PodConditionPattern) bool {
		return c.GetType() == conditionDisruptionTarget && c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE
	})
}

func (r podRow) skipsDelay() bool { return skipsDelay(r.match, r.pod.GetFailure()) }

// nextPod is when pods may be created again after failures. If a pod succeeded in the future,
// because clocks differ, and that ends the delay earlier, it is the time of the success. ok is
// false if pods may be created now. It is computed from facts in the cluster only, so a
// restart loses nothing (invariant I10).
func (b backoff) nextPod(now time.Time, r retryState) (at time.Time, ok bool) {
	delay := b.delay(r)
	at = r.last.Add(delay)
	// Clocks differ, so a pod's end may lie in the future. As in upstream, the delay begins
	// at that end. But nextPod returns no time later than one delay from now, so that the
	// next decision comes by then.
	if latest := now.Add(delay); at.After(latest) {
		at = latest
	}
	if r.consecutive == 0 || !at.After(now) {
		return time.Time{}, false
	}
	if next := r.nextSuccess; !next.IsZero() && next.Before(at) {
		at = next
	}
	return at, true
}

// A retryState holds the failures and successes that the retry delay depends on.
type retryState struct {
	// consecutive counts failed pods since the last success.
	consecutive int32
	// last is when the last of them finished, lastSuccess when the last success was that counts; zero if there is none.
	last, lastSuccess time.Time
	// nextSuccess is the earliest success that lies in the future; zero if none
	// does.
	nextSuccess time.Time
	// group is 0 for all pods of the Job, and 1 more than the index for those of an index.
	group int64
}

func (r *retryState) add(failed time.Time) {
	r.consecutive++
	if failed.After(r.last) {
		r.last = failed
	}
}

// readRetry counts the failures after the last success, but not those of pods whose
// index is out of the Job's range (upstream getValidPodsWithFilter, v1.37).
func readRetry(s *snapshot, rows []podRow) retryState {
	successes := readSuccesses(s.now, s.req.GetRetry())
	for _, r := range rows {
		if r.succeeded && r.inRange {
			successes.add(s.now, r.pod.GetFinishedTime().AsTime())
		}
	}
	fromFacts := readFailures(s.req.GetRetry(), s.failurePolicy, successes)
	var fromRows retryState
	for _, r := range rows {
		if at := r.pod.GetFinishedTime().AsTime(); r.failed && r.inRange && successes.before(at) && !r.skipsDelay() {
			fromRows.add(at)
		}
	}
	// Normally the two overlap, but each may have failures that the other lacks.
	fromFacts.consecutive = max(fromRows.consecutive, fromFacts.consecutive)
	if fromRows.last.After(fromFacts.last) {
		fromFacts.last = fromRows.last
	}
	return fromFacts
}

// readFailures counts the failures of facts that delay the next pod.
func readFailures(facts *jobpolicyv1.RetryFacts, policy failurePolicy, successes successTimes) retryState {
	r := retryState{lastSuccess: successes.last, nextSuccess: successes.next}
	for _, f := range facts.GetRecentFailures() {
		if at := f.GetFinishedTime().AsTime(); successes.before(at) && !skipsDelay(policy.match(f.GetFailure()), f.GetFailure()) {
			r.add(at)
		}
	}
	return r
}

// successTimes are the last success, and the next one that lies in the future because
// clocks differ; each is zero if there is none. A success in the future does not
// count yet. If it did, no failure before that time would delay the next pod.
type successTimes struct{ last, next time.Time }

func readSuccesses(now time.Time, facts *jobpolicyv1.RetryFacts) successTimes {
	var t successTimes
	if at := facts.GetLastSuccessTime(); at != nil {
		t.add(now, at.AsTime())
	}
	return t
}

func (t *successTimes) add(now, at time.Time) {
	switch {
	case at.After(now) && (t.next.IsZero() || at.Before(t.next)):
		t.next = at
	case !at.After(now) && at.After(t.last):
		t.last = at
	}
}

// before reports whether every success that counts came before a failure.
func (t successTimes) before(failed time.Time) bool { return t.last.IsZero() || failed.After(t.last) }

// after adds earlier failures in a row, of which only the number is known. They cause
// no delay by themselves.
func (r retryState) after(earlier int64) retryState {
	if r.consecutive > 0 {
		r.consecutive = clamp32(int64(r.consecutive) + earlier)
	}
	return r
}

// of says whose failures these are: those of an index, or with nil of all pods of the Job.
func (r retryState) of(index *int32) retryState {
	if index != nil {
		r.group = int64(*index) + 1
	}
	return r
}
