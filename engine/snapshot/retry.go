package snapshot

import (
	"bytes"
	"cmp"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxFailures is how many recent failures the contract allows. The retry delay
// reaches its maximum long before.
const maxFailures = 64

// retry returns the ends of pods on which the retry delay depends; nil if no pod has
// ended. A pod counts if it ended while it was tracked, or if it ended by itself. A pod
// that was released before it was deleted did not fail.
func (c *counter) retry() *jobpolicyv1.RetryFacts {
	var failed []*pod
	m := &jobpolicyv1.RetryFacts{}
	for _, p := range c.pods {
		if !c.countsForRetry(p) {
			continue
		}
		if !p.succeeded() {
			failed = append(failed, p)
			continue
		}
		if at := p.finished(); m.LastSuccessTime == nil || at.After(m.LastSuccessTime.AsTime()) {
			m.LastSuccessTime = timestamppb.New(at)
		}
	}
	slices.SortFunc(failed, func(a, b *pod) int {
		return cmp.Or(a.finished().Compare(b.finished()), bytes.Compare(a.UID, b.UID))
	})
	for _, p := range failed[max(0, len(failed)-maxFailures):] {
		m.RecentFailures = append(m.RecentFailures, &jobpolicyv1.PodFailureFact{
			FinishedTime: timestamppb.New(p.finished()), Failure: c.failure(p),
		})
	}
	if m.LastSuccessTime == nil && len(failed) == 0 {
		return nil
	}
	return m
}

func (c *counter) countsForRetry(p *pod) bool {
	byItself := p.ended() && !p.Deleting
	if !p.Tracked && !byItself {
		return false
	}
	if ix := c.index(p); c.indexed() && (ix == nil || *ix >= c.spec.GetCompletions()) {
		return false
	}
	return p.ended() || (p.Deleting && !c.replaceFailedOnly())
}
