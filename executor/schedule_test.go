package executor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// While many Jobs are at work, one of which only a status is to be told leaves the
// API server to the others, but not for ever.
func TestWhatIsNotPressingWaitsWhileTheAPIServerIsBusy(t *testing.T) {
	cases := map[string]struct {
		lazy     bool
		open     int
		wokenAgo time.Duration
		planned  time.Duration // ahead; 0: nothing is
		want     time.Duration
	}{
		"pressing":                    {lazy: false, open: 3, want: 0},
		"nobody else is at work":      {lazy: true, open: 1, want: 0},
		"many are at work":            {lazy: true, open: 3, want: time.Minute},
		"many are at work for long":   {lazy: true, open: 3, wokenAgo: maxDeferral, want: 0},
		"pressing although it is old": {lazy: false, open: 3, wokenAgo: maxDeferral, want: 0},
		"a planned round is due":      {lazy: true, open: 3, planned: -1, want: 0},
		"a planned round is near":     {lazy: true, open: 3, planned: time.Second, want: time.Second},
		"a planned round is far":      {lazy: true, open: 3, planned: time.Hour, want: time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := testConfig(newServer(), &script{})
				cfg.MaxJobWrites, cfg.StatusPeriod = 2, time.Minute
				e, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer discard(e)
				occupy(e, tc.open)
				s := &jobState{wakeCause: telemetry.CausePodEvent, wokenAt: time.Now().Add(-tc.wokenAgo), lazy: tc.lazy}
				if tc.planned != 0 {
					s.planned = time.Now().Add(tc.planned)
				}
				if got := e.takeWake(s).wait; got != tc.want {
					t.Errorf("waits %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// occupy lets so many other Jobs be at work until the test ends.
func occupy(e *Executor, n int) {
	for range n {
		_, err := e.open.Acquire(context.Background(), "other")
		must(err)
	}
}

// A round that was planned for a time, such as a deadline or the end of a retry
// delay, comes then, whatever that is not pressing has come before it.
func TestAPlannedRoundIsOnTimeAlthoughOthersAreAtWork(t *testing.T) {
	var asked []time.Duration
	cfg := testConfig(newServer(testJob()), nil)
	begun := time.Time{}
	cfg.Decider = &script{answers: []answer{func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		asked, begun = append(asked, 0), time.Now()
		return &jobpolicyv1.DecideJobResponse{
			RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED,
			RequeueTime: timestamppb.New(req.GetNow().AsTime().Add(2 * time.Second)),
		}, nil
	}, func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		asked = append(asked, time.Since(begun))
		return &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
	}}}
	cfg.MaxJobWrites = 2
	inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
		time.Sleep(time.Second)
		occupy(e, 3)
		s, _ := e.jobs.find(testUID(1))
		e.wakeLazily(s, telemetry.CausePodEvent, 0)
		time.Sleep(time.Minute)
		synctest.Wait()
	})
	if len(asked) != 2 || asked[1] != 2*time.Second {
		t.Errorf("asked after %v, want at once and after 2s", asked)
	}
}

// A status that records finished pods may go sooner than one that only counts:
// half a period, in which the next pod may finish.
func TestWhatRecordsPodsGoesBeforeWhatOnlyCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(newServer(), &script{})
		cfg.StatusPeriod = time.Minute
		e, err := New(cfg)
		must(err)
		defer discard(e)
		s := e.jobs.with("ns", testUID(1), func(s *jobState) { s.observe(testJob(), jobWatched) })
		s.spaceStatuses(cfg.StatusPeriod)
		snap, err := e.snapshot(s, false)
		must(err)
		record, status := deferredUntil(snap.req, jobpolicyv1.Step_STEP_RECORD_PODS), deferredUntil(snap.req, jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS)
		if !record.AsTime().Equal(s.statusDue) || status.AsTime().Sub(record.AsTime()) != cfg.StatusPeriod/2 {
			t.Errorf("records from %v, counts from %v; a status is due at %v", record.AsTime(), status.AsTime(), s.statusDue)
		}
	})
}

// The decision says when to ask again. One that changes nothing, because what it
// releases is kept from being released, leads to no other one at once.
func TestTheDecisionSaysWhenToAskAgain(t *testing.T) {
	const atOnce, whenConfirmed, none = jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE, jobpolicyv1.FollowUp_FOLLOW_UP_WHEN_CONFIRMED, jobpolicyv1.FollowUp_FOLLOW_UP_NONE
	create, release := &jobpolicyv1.CreatePods{Count: 1}, uidsOf(t, 3)
	const held = 20 * time.Second // Longer than every other wait.
	cases := map[string]struct {
		decision *jobpolicyv1.DecideJobResponse
		held     bool
		want     next
	}{
		"at once":                        {&jobpolicyv1.DecideJobResponse{Create: create, FollowUp: atOnce}, false, next{again: true}},
		"when a release is confirmed":    {&jobpolicyv1.DecideJobResponse{Release: release, FollowUp: whenConfirmed}, false, next{after: time.Second}},
		"when something changes":         {&jobpolicyv1.DecideJobResponse{Create: create, FollowUp: none}, false, next{after: missedEvent}},
		"a value of a later contract":    {&jobpolicyv1.DecideJobResponse{Create: create, FollowUp: 99}, false, next{after: missedEvent}},
		"at once, but nothing is done":   {&jobpolicyv1.DecideJobResponse{Release: release, FollowUp: atOnce}, true, next{after: missedEvent}},
		"at once, for a status is new":   {&jobpolicyv1.DecideJobResponse{Release: release, Status: &jobpolicyv1.JobStatus{}, FollowUp: atOnce}, true, next{again: true}},
		"confirmed, but nothing is done": {&jobpolicyv1.DecideJobResponse{Release: release, FollowUp: whenConfirmed}, true, next{after: missedEvent}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(newServer(testJob()), &script{})
			cfg.StatusPeriod = time.Second
			e, err := New(cfg)
			must(err)
			s := e.jobs.with("ns", testUID(1), func(s *jobState) { s.observe(testJob(), jobWatched) })
			if tc.held {
				s.pods.Observe(leanPod(3), tracker.Watch)
				s.releaseHolds = map[types.UID]hold{testUID(3): {notBefore: time.Now().Add(held)}}
			}
			snap, err := e.snapshot(s, false)
			must(err)
			if got := e.nextAfter(s, snap, tc.decision); got != tc.want {
				t.Errorf("asks again: %+v, want %+v", got, tc.want)
			}
		})
	}
}

// While many pods are released, others end: one status is to record as many as it
// may. Few are released at once, and nothing waits for that.
func TestAStatusWaitsForLongReleases(t *testing.T) {
	for pods, waits := range map[int]bool{2: false, 5: true} {
		var objects []runtime.Object
		d := &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Status: &jobpolicyv1.JobStatus{Ready: new(int32)}}
		for n := range pods {
			objects = append(objects, testPod(2+n, failedPhase))
			uid, err := wire.UIDBytes(testUID(2 + n))
			must(err)
			d.Release = append(d.Release, uid)
		}
		server := newServer(append(objects, testJob())...)
		var released time.Time
		server.failures["patch pods"] = func(n int) error {
			if n == 1 {
				released = time.Now()
				time.Sleep(200 * time.Millisecond)
			}
			return nil
		}
		cfg := testConfig(server, &script{})
		cfg.MaxJobWrites, cfg.StatusPeriod = 3, time.Minute
		e, err := New(cfg)
		must(err)
		s := e.jobs.with("ns", testUID(1), func(s *jobState) { s.observe(testJob(), jobWatched) })
		for n := range pods {
			s.pods.Observe(leanPod(2+n, failedPhase), tracker.Watch)
		}
		snap, err := e.snapshot(s, false)
		must(err)
		must(e.apply(t.Context(), s, e.podCalls(s), snap, d))
		// Of a Job that was quiet, the next status is due when one was written.
		if got := s.statusDue.After(released); got != waits {
			t.Errorf("with %d releases the next status is due %v after the first of them; waits: want %v", pods, s.statusDue.Sub(released), waits)
		}
	}
}
