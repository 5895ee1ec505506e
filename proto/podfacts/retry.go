package podfacts

import (
	"cmp"
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxFailures is how many recent failures the contract allows. Fewer are enough for the
// retry delay to reach its maximum.
const maxFailures = 64

// failure is a pod that failed.
type failure struct {
	uid      string
	finished time.Time
	seen     time.Time // See Counted.EndSeen.
	details  *jobpolicyv1.PodFailure
	index    *int32
}

// retryFacts are the facts from which the engine computes the retry delay. They outlive
// the pods. After a restart they are rebuilt from the pods that are left (invariant I10).
type retryFacts struct {
	lastSuccess, successSeen time.Time
	// failures are sorted by finished; at most maxFailures. Those before lastSuccess are
	// kept, too, because lastSuccess may come from a node whose clock is fast.
	failures []failure
}

// seen is how a pod was seen: for the first time, after its deletion was accepted, and as ended
// at this time (Counted.EndSeen).
type seen struct {
	first, deleted bool
	end            time.Time
}

// learn adds a pod that has ended or ends. A tracked pod counts. A pod that is not tracked counts
// if it failed by itself, or if it had succeeded before it was seen first. A pod that was released
// and then deleted has not failed.
func (f *retryFacts) learn(pod *Pod, policy *Policy, how seen) {
	byItself := pod.ended() && !pod.Deleting && !how.deleted && (how.first || !pod.succeeded())
	if !pod.Tracked && !byItself {
		return
	}
	if !policy.inRange(pod) {
		return
	}
	at := pod.EndTime()
	switch {
	case pod.succeeded():
		if at.After(f.lastSuccess) {
			f.lastSuccess, f.successSeen = at, how.end
		}
	case pod.ended(), pod.Deleting && !policy.ReplaceFailedOnly:
		f.failed(policy.failed(pod, how.end))
	}
}

// overdue adds a pod that is being deleted and counts as failed although it has not ended. Without
// ReplaceFailedOnly it has counted since its deletion began.
func (f *retryFacts) overdue(pod *Pod, policy *Policy, endSeen time.Time) {
	if policy.ReplaceFailedOnly && policy.inRange(pod) {
		f.failed(policy.failed(pod, endSeen))
	}
}

// inRange reports whether the Job counts the pod.
func (p *Policy) inRange(pod *Pod) bool {
	ix := p.index(pod)
	return !p.Indexed || ix != noIndex && ix < p.Completions
}

// failed is what is kept of a failed pod.
func (p *Policy) failed(pod *Pod, endSeen time.Time) failure {
	return failure{uid: string(pod.UID), finished: pod.EndTime(), seen: endSeen, details: p.failure(pod), index: indexField(p.index(pod))}
}

// failed records a failure. It replaces an earlier record of the same pod, which may have
// had a less exact time.
func (f *retryFacts) failed(fact failure) {
	f.failures = slices.DeleteFunc(f.failures, func(old failure) bool { return old.uid == fact.uid })
	at, _ := slices.BinarySearchFunc(f.failures, fact, func(a, b failure) int {
		return cmp.Or(a.finished.Compare(b.finished), cmp.Compare(a.uid, b.uid))
	})
	f.failures = slices.Insert(f.failures, at, fact)
	if over := len(f.failures) - maxFailures; over > 0 {
		f.failures = slices.Delete(f.failures, 0, over)
	}
}

// Retry returns the ends of pods on which the retry delay depends, and since KeepTries also what the
// resources of the next pods depend on; nil if no pod has ended.
func (c *Counter[P]) Retry(wall Wall) *jobpolicyv1.RetryFacts {
	f := &c.retry
	m := &jobpolicyv1.RetryFacts{FailedTries: c.FailedTries()}
	if f.lastSuccess.IsZero() && len(f.failures) == 0 && len(m.FailedTries) == 0 {
		return nil
	}
	if !f.lastSuccess.IsZero() {
		m.LastSuccessTime = wall.notAfter(f.lastSuccess, f.successSeen)
	}
	for _, fact := range f.failures {
		m.RecentFailures = append(m.RecentFailures, &jobpolicyv1.PodFailureFact{
			FinishedTime: wall.notAfter(fact.finished, fact.seen), Failure: fact.details, Index: fact.index,
		})
	}
	return m
}
