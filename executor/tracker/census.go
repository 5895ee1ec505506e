package tracker

import (
	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Hindered sums up the active pods that cannot start.
type Hindered struct {
	// Pods is how many there are.
	Pods int32 `json:"pods"`
	// Reason is what most of them wait for, as podcache.Pod.WaitingReason says.
	Reason string `json:"reason"`
}

// hindrances count the active pods that cannot start, by reason.
type hindrances map[string]int32

func (h *hindrances) add(r *record, sign int32) {
	reason := r.Pod.WaitingReason()
	if !r.Share.Active || reason == "" {
		return
	}
	if *h == nil {
		*h = hindrances{}
	}
	if (*h)[reason] += sign; (*h)[reason] == 0 {
		delete(*h, reason)
	}
}

// Hindered sums up the active pods that cannot start. It costs O(reasons).
func (j *Job) Hindered() (sum Hindered) {
	j.mu.Lock()
	defer j.mu.Unlock()
	most := int32(0)
	for reason, n := range j.pods.hindrances {
		sum.Pods += n
		if n > most || n == most && reason < sum.Reason {
			most, sum.Reason = n, reason
		}
	}
	return sum
}

// A Census is what people may want to know of a Job's pods. Decisions do not use it.
type Census struct {
	Summary *jobpolicyv1.PodSummary
	// Known is how many pods there are, finished ones included.
	Known int
	// Pods are all of them, in no order; nil if there are too many.
	Pods []*podcache.Pod
}

// Census sums up the pods, and lists them if there are at most mostPods.
func (j *Job) Census(mostPods int) Census {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := Census{Summary: j.pods.counter.Totals.Summary(), Known: len(j.pods.records)}
	if c.Known <= mostPods {
		for _, r := range j.pods.records {
			c.Pods = append(c.Pods, r.Pod)
		}
	}
	return c
}
