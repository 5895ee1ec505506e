package tracker

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxFailures is how many recent failures the contract takes. The retry delay
// reaches its maximum long before.
const maxFailures = 64

// failure is a pod that failed.
type failure struct {
	uid      types.UID
	finished time.Time
	seen     time.Time // See record.endSeen.
	details  *jobpolicyv1.PodFailure
}

// retryFacts are what the retry delay is computed from. They outlive the pod
// objects as long as this process does, and are rebuilt from the pods that are
// left when it starts again (invariant I10).
type retryFacts struct {
	lastSuccess, successSeen time.Time
	// In ascending order of finished; at most maxFailures. Those before lastSuccess
	// are kept, too: that may be the word of a node whose clock is fast.
	failures []failure
}

func (f *retryFacts) succeeded(at, seen time.Time) {
	if at.After(f.lastSuccess) {
		f.lastSuccess, f.successSeen = at, seen
	}
}

// failed records a failure. The same pod may fail again with better knowledge
// of when it ended; the later word counts.
func (f *retryFacts) failed(fact failure) {
	f.failures = slices.DeleteFunc(f.failures, func(old failure) bool { return old.uid == fact.uid })
	at, _ := slices.BinarySearchFunc(f.failures, fact, func(a, b failure) int {
		if c := a.finished.Compare(b.finished); c != 0 {
			return c
		}
		if a.uid < b.uid {
			return -1
		}
		return 1
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
		m.LastSuccessTime = wire.Timestamp(byThen(f.lastSuccess, f.successSeen, now))
	}
	for _, fact := range f.failures {
		m.RecentFailures = append(m.RecentFailures, &jobpolicyv1.PodFailureFact{
			FinishedTime: wire.Timestamp(byThen(fact.finished, fact.seen, now)), Failure: fact.details,
		})
	}
	return m
}
