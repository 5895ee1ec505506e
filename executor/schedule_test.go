package executor

import (
	"testing"
	"time"
)

// While many Jobs are at work, one of which only a status is to be told leaves the
// API server to the others, but not for ever.
func TestWhatIsNotPressingWaitsWhileTheAPIServerIsBusy(t *testing.T) {
	cases := map[string]struct {
		lazy     bool
		open     int
		wokenAgo time.Duration
		want     time.Duration
	}{
		"pressing":                    {lazy: false, open: 3, want: 0},
		"nobody else is at work":      {lazy: true, open: 1, want: 0},
		"many are at work":            {lazy: true, open: 3, want: time.Minute},
		"many are at work for long":   {lazy: true, open: 3, wokenAgo: maxDeferral, want: 0},
		"pressing although it is old": {lazy: false, open: 3, wokenAgo: maxDeferral, want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(newServer(), &script{})
			cfg.MaxJobWrites, cfg.StatusPeriod = 2, time.Minute
			e, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for range tc.open {
				e.open <- struct{}{}
			}
			s := &jobState{wakeCause: CausePodEvent, wokenAt: time.Now().Add(-tc.wokenAgo), lazy: tc.lazy}
			if got := e.takeWake(s).wait; got != tc.want {
				t.Errorf("waits %v, want %v", got, tc.want)
			}
		})
	}
}

// A status that records finished pods may go sooner than one that only counts:
// half a period, in which the next pod may finish.
func TestWhatRecordsPodsGoesBeforeWhatOnlyCounts(t *testing.T) {
	cfg := testConfig(newServer(), &script{})
	cfg.StatusPeriod = time.Minute
	e, err := New(cfg)
	must(err)
	s := e.jobs.with("ns", testUID(1), func(s *jobState) { s.observe(testJob(), false) })
	s.spaceStatuses(cfg.StatusPeriod)
	snap, err := e.snapshot(s, false)
	must(err)
	record, status := snap.req.GetRecordNotBefore(), snap.req.GetStatusNotBefore()
	if !record.AsTime().Equal(s.statusDue) || status.AsTime().Sub(record.AsTime()) != cfg.StatusPeriod/2 {
		t.Errorf("records from %v, counts from %v; a status is due at %v", record.AsTime(), status.AsTime(), s.statusDue)
	}
}
