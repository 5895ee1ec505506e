package podfacts

import (
	"fmt"
	"testing"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestTheQueueDropsPodsThatAreAccountedFor(t *testing.T) {
	c := New(Policy{}, func(p *Pod) Pod { return *p })
	var pods []*Counted[*Pod]
	for n := range 1000 {
		pods = append(pods, &Counted[*Pod]{Pod: &Pod{UID: fmt.Append(nil, n), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, Tracked: true}})
		c.Add(pods[n], true)
	}
	forget := func(n int) {
		c.Remove(pods[n])
		c.Tidy()
	}
	for n := range 495 {
		forget(n)
		forget(999 - n)
	}
	if most := 2*10 + staleQueue; len(c.unaccounted.queue) > most {
		t.Errorf("a queue of %d for 10 pods, want at most %d", len(c.unaccounted.queue), most)
	}
	if rows, _ := c.Rows(nil, 1000, nil); len(rows) != 10 {
		t.Errorf("%d rows, want 10", len(rows))
	}
	for n := range 10 {
		released := *pods[495+n].Pod
		released.Tracked = false
		c.Remove(pods[495+n])
		pods[495+n].Pod = &released
		c.Add(pods[495+n], false)
	}
	if rows, _ := c.Rows(nil, 1000, nil); len(rows) != 0 || len(c.unaccounted.queue) != 0 {
		t.Errorf("%d rows from a queue of %d after the last release", len(rows), len(c.unaccounted.queue))
	}
}
