package tracker

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxFailures is how many recent failures the contract allows. Fewer are enough for the
// retry delay to reach its maximum.
const maxFailures = 64

// failure is a pod that failed.
type failure struct {
	uid      types.UID
	finished time.Time
	seen     time.Time // See record.endSeen.
	details  *jobpolicyv1.PodFailure
}

// retryFacts are the facts from which the engine computes the retry delay. They outlive
// the pod objects. After a restart they are rebuilt from the pods that are left
// (invariant I10).
type retryFacts struct {
	lastSuccess, successSeen time.Time
	// failures are sorted by finished; at most maxFailures. Those before lastSuccess are
	// kept, too, because lastSuccess may come from a node whose clock is fast.
	failures []failure
}

// learn adds a finished pod to the retry facts. A pod with the finalizer counts. A pod
// without it counts if it failed by itself, or if it had succeeded before this process saw
// it. A pod that was released and then deleted has not failed.
func (f *retryFacts) learn(r *record, policy *Policy, first bool) {
	byItself := r.pod.Ended() && !r.deleting() && (first || r.pod.Phase() == corev1.PodFailed)
	if !r.pod.HasTrackingFinalizer && !byItself {
		return
	}
	if policy.Indexed && (r.pod.Index == NoIndex || r.pod.Index >= policy.Completions) {
		return
	}
	at := finishedTime(r.pod)
	if r.pod.Phase() == corev1.PodSucceeded {
		f.succeeded(at, r.endSeen)
		return
	}
	if !r.pod.Ended() && (policy.ReplaceFailedOnly || !r.pod.Deleting) {
		return
	}
	fact := failure{uid: r.pod.UID, finished: at, seen: r.endSeen}
	if policy.Failures != nil {
		fact.details = wire.PodFailure(r.pod, policy.Failures)
	}
	f.failed(fact)
}

func (f *retryFacts) succeeded(at, seen time.Time) {
	if at.After(f.lastSuccess) {
		f.lastSuccess, f.successSeen = at, seen
	}
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

func (f *retryFacts) message(now time.Time) *jobpolicyv1.RetryFacts {
	if f.lastSuccess.IsZero() && len(f.failures) == 0 {
		return nil
	}
	m := &jobpolicyv1.RetryFacts{}
	if !f.lastSuccess.IsZero() {
		m.LastSuccessTime = wire.Timestamp(notAfter(f.lastSuccess, f.successSeen, now))
	}
	for _, fact := range f.failures {
		m.RecentFailures = append(m.RecentFailures, &jobpolicyv1.PodFailureFact{
			FinishedTime: wire.Timestamp(notAfter(fact.finished, fact.seen, now)), Failure: fact.details,
		})
	}
	return m
}
