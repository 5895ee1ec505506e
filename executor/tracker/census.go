package tracker

import (
	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A Census is what people may want to know of a Job's pods. No decision needs it.
type Census struct {
	Summary *jobpolicyv1.PodSummary
	// Known is how many pods there are, finished ones included.
	Known int
	// Pods are all of them, in no order; nil if there are too many.
	Pods []*podcache.Pod
}

// Census sums the pods up, and lists them if there are at most so many.
func (t *Tracker) Census(mostPods int) Census {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := Census{Summary: t.pods.totals.summary(), Known: len(t.pods.records)}
	if c.Known <= mostPods {
		for _, r := range t.pods.records {
			c.Pods = append(c.Pods, r.pod)
		}
	}
	return c
}
