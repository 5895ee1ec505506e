package executor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A reconcile that is planned for a time, such as a deadline or the end of a retry delay,
// is on time, even if low-priority events come before it and other Jobs are reconciled.
func TestAPlannedReconcileIsOnTime(t *testing.T) {
	var asked []time.Duration
	server := newServer(testJob())
	cfg := testConfig(server, nil)
	begun := time.Time{}
	cfg.Decider = &hangingFor{name: "busy", Decider: &script{Answers: []reply{func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		asked, begun = append(asked, 0), time.Now()
		return &jobpolicyv1.DecideJobResponse{
			RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED,
			RequeueTime: timestamppb.New(req.GetNow().AsTime().Add(2 * time.Second)),
		}, nil
	}, func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		asked = append(asked, time.Since(begun))
		return &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
	}}}}
	cfg.Writes.PerJob = 2
	inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
		time.Sleep(time.Second)
		for n := range 3 {
			_, err := server.BatchV1().Jobs("ns").Create(t.Context(), testJob(func(j *batchv1.Job) { j.Name, j.UID = fmt.Sprint("busy-", n), testUID(10+n) }), metav1.CreateOptions{})
			must(err)
		}
		synctest.Wait()
		if busy := e.queue.InProgress(); busy != 3 {
			t.Errorf("%d Jobs are reconciled, want 3", busy)
		}
		s, _ := e.jobs.Find(testKey)
		e.queue.enqueue(s, causePod, controller.PriorityLow)
		time.Sleep(time.Minute)
		synctest.Wait()
	})
	if len(asked) != 2 || asked[1] != 2*time.Second {
		t.Errorf("asked after %v, want at once and after 2s", asked)
	}
}

// hangingFor does not answer about Jobs whose name begins so.
type hangingFor struct {
	Decider
	name string
}

func (h *hangingFor) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	if strings.HasPrefix(req.GetJob().GetName(), h.name) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Decider.DecideJob(ctx, req)
}

// A status that only counts waits half a period longer than one that records finished pods,
// because the next pod may finish meanwhile.
func TestWhatRecordsPodsGoesBeforeWhatOnlyCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(newServer(), &script{})
		cfg.StatusPeriod = time.Minute
		e := build(t, cfg)
		defer discard(e)
		s := e.jobs.With(testKey, func(s *tracker.Job) { s.Observe(testJob(), tracker.Watch) })
		s.StatusWritten(cfg.StatusPeriod)
		snap, err := e.decider.snapshot(s, false)
		must(err)
		record, status := deferredUntil(snap.req, jobpolicyv1.Step_STEP_RECORD_PODS), deferredUntil(snap.req, jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS)
		if !record.AsTime().Equal(s.StatusDue()) || status.AsTime().Sub(record.AsTime()) != cfg.StatusPeriod/2 {
			t.Errorf("records from %v, counts from %v; a status is due at %v", record.AsTime(), status.AsTime(), s.StatusDue())
		}
	})
}

// The decision says when to ask again. If nothing of it is done, because the release of
// its pods is backing off, no other one follows at once.
func TestTheDecisionSaysWhenToAskAgain(t *testing.T) {
	const atOnce, whenConfirmed, none = jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE, jobpolicyv1.FollowUp_FOLLOW_UP_WHEN_CONFIRMED, jobpolicyv1.FollowUp_FOLLOW_UP_NONE
	create, release := &jobpolicyv1.CreatePods{Count: 1}, uidsOf(t, 3)
	const delay = 20 * time.Second // Longer than every other wait.
	ifNoEvent := controller.Result{RequeueAfter: requeueIfNoEvent}
	cases := map[string]struct {
		decision *response
		backsOff bool
		want     controller.Result
	}{
		"at once":                        {decision: &response{Create: create, FollowUp: atOnce}, want: controller.Result{Requeue: true}},
		"when a release is confirmed":    {decision: &response{Release: release, FollowUp: whenConfirmed}, want: controller.Result{RequeueAfter: time.Second}},
		"when something changes":         {decision: &response{Create: create, FollowUp: none}, want: ifNoEvent},
		"a value of a later contract":    {decision: &response{Create: create, FollowUp: 99}, want: ifNoEvent},
		"at once, but nothing is done":   {decision: &response{Release: release, FollowUp: atOnce}, backsOff: true, want: ifNoEvent},
		"at once, for a status is new":   {decision: &response{Release: release, Status: &jobpolicyv1.JobStatus{}, FollowUp: atOnce}, backsOff: true, want: controller.Result{Requeue: true}},
		"confirmed, but nothing is done": {decision: &response{Release: release, FollowUp: whenConfirmed}, backsOff: true, want: ifNoEvent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(newServer(testJob()), &script{})
			cfg.StatusPeriod = time.Second
			e := build(t, cfg)
			s := e.jobs.With(testKey, func(s *tracker.Job) { s.Observe(testJob(), tracker.Watch) })
			if tc.backsOff {
				s.ObservePod(cachedPod(3), tracker.Watch)
				s.ReleaseFailed(testUID(3), clock.Limits{First: delay, Max: delay})
			}
			if got := e.reconciler.cfg.followUp(s, tc.decision, 0); got != tc.want {
				t.Errorf("asks again: %+v, want %+v", got, tc.want)
			}
		})
	}
}

// While many pods are released, others end, and one status should record as many as
// possible. If few pods are released, no status is postponed.
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
		server.Failures["patch pods"] = func(n int) error {
			if n == 1 {
				released = time.Now()
				time.Sleep(200 * time.Millisecond)
			}
			return nil
		}
		cfg := testConfig(server, &script{})
		cfg.Writes.PerJob, cfg.StatusPeriod = 3, time.Minute
		e := build(t, cfg)
		s := e.jobs.With(testKey, func(s *tracker.Job) { s.Observe(testJob(), tracker.Watch) })
		for n := range pods {
			s.ObservePod(cachedPod(2+n, failedPhase), tracker.Watch)
		}
		snap, err := e.decider.snapshot(s, false)
		must(err)
		must(e.reconciler.applier.carryOut(t.Context(), s, e.reconciler.calls(s), snap, d))
		// After a quiet time, the next status is due at once, unless it was postponed.
		if got := s.StatusDue().After(released); got != waits {
			t.Errorf("with %d releases the next status is due %v after the first of them; waits: want %v", pods, s.StatusDue().Sub(released), waits)
		}
	}
}
