package executor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// inBubble runs an Executor in virtual time while f runs. prepare may be nil.
func inBubble(t *testing.T, cfg Config, prepare func(*Executor), f func(t *testing.T, e *Executor)) {
	synctest.Test(t, func(t *testing.T) {
		e := build(t, cfg)
		if prepare != nil {
			prepare(e)
		}
		run(t, e)
		f(t, e)
	})
}

// runFor runs an Executor for some virtual time.
func runFor(t *testing.T, cfg Config, long time.Duration) {
	inBubble(t, cfg, nil, func(*testing.T, *Executor) {
		time.Sleep(long)
		synctest.Wait()
	})
}

// discard ends what New has begun, for an Executor that is not run otherwise.
func discard(e *Executor) {
	ended, end := context.WithCancel(context.Background())
	end()
	must(e.Run(ended))
}

// Setting the clock does not change how long a status or a retry is deferred.
func TestAClockThatIsSetLengthensNoWait(t *testing.T) {
	for name, step := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour, "not": 0} {
		t.Run(name, func(t *testing.T) {
			wall := &fakes.Clock{}
			cfg := testConfig(newServer(), &script{})
			cfg.Now, cfg.StatusPeriod = wall.Now, time.Second
			synctest.Test(t, func(t *testing.T) {
				e := build(t, cfg)
				defer discard(e)
				s := e.jobs.With(testKey, func(s *tracker.Job) { s.Observe(testJob(), tracker.Watch) })
				s.StatusWritten(cfg.StatusPeriod)
				s.StepFailed(tracker.Create, clock.Limits{First: 2 * time.Second, Max: time.Minute})
				s.StepFailed(tracker.Delete, clock.Limits{First: 3 * time.Second, Max: time.Minute})
				wall.Set(step)
				snap, err := e.decider.snapshot(s, false)
				must(err)
				ahead := func(at *timestamppb.Timestamp) time.Duration { return at.AsTime().Sub(snap.req.GetNow().AsTime()) }
				for what, wait := range map[string]struct{ got, want time.Duration }{
					"create": {ahead(deferredUntil(snap.req, jobpolicyv1.Step_STEP_CREATE_PODS)), 2 * time.Second},
					"delete": {ahead(deferredUntil(snap.req, jobpolicyv1.Step_STEP_DELETE_PODS)), 3 * time.Second},
					"status": {ahead(deferredUntil(snap.req, jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS)), cfg.StatusPeriod / 2},
					"record": {ahead(deferredUntil(snap.req, jobpolicyv1.Step_STEP_RECORD_PODS)), 0},
				} {
					if wait.got != wait.want {
						t.Errorf("%s waits %v, want %v", what, wait.got, wait.want)
					}
				}
			})
		})
	}
}

// A planned reconcile is not late if the clock is set between the request and the plan. A
// clock that is set forward is noticed before.
func TestAClockThatIsSetMovesNoRequeue(t *testing.T) {
	for name, tc := range map[string]struct{ step, want time.Duration }{
		"back": {-time.Hour, time.Minute}, "a little forward": {clockTolerance, time.Minute}, "forward": {time.Hour, checkStep},
	} {
		t.Run(name, func(t *testing.T) {
			wall := &fakes.Clock{}
			var asked []time.Time
			question := func(answer *jobpolicyv1.DecideJobResponse) reply {
				return func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
					asked = append(asked, time.Now())
					wall.Set(tc.step)
					answer.RequestId, answer.Disposition = req.GetRequestId(), jobpolicyv1.Disposition_DISPOSITION_SETTLED
					answer.RequeueTime = timestamppb.New(req.GetNow().AsTime().Add(time.Minute))
					return answer, nil
				}
			}
			decider := &script{Answers: []reply{question(&jobpolicyv1.DecideJobResponse{}), question(&jobpolicyv1.DecideJobResponse{})}}
			cfg := testConfig(newServer(testJob()), decider)
			cfg.Now = wall.Now
			runFor(t, cfg, 2*time.Minute)
			if len(asked) != 2 || asked[1].Sub(asked[0]).Round(checkStep) != tc.want {
				t.Errorf("asked at %v, want twice, %v apart", asked, tc.want)
			}
		})
	}
}

// After an exhausted quota, creation is deferred for the API backoff, even if the clock is
// set back by an hour at that moment.
func TestAClockSetBackDelaysNoCreation(t *testing.T) {
	wall := &fakes.Clock{}
	var created time.Time
	server := newServer(testJob())
	server.Failures["create pods"] = func(n int) error {
		if n == 1 {
			wall.Set(-time.Hour)
			return apierrors.NewInternalError(errors.New("exceeded quota"))
		}
		created = time.Now()
		return nil
	}
	cfg := testConfig(server, &script{Otherwise: creatingOnce})
	cfg.Now, cfg.APIBackoff, cfg.MaxAPIBackoff = wall.Now, time.Second, time.Minute
	inBubble(t, cfg, nil, func(t *testing.T, _ *Executor) {
		begun := time.Now()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if created.IsZero() || created.Sub(begun) > 5*time.Second {
			t.Errorf("begun at %v, the pod was created at %v", begun, created)
		}
	})
}

// creatingOnce answers with the creation of one pod, unless creation is deferred.
func creatingOnce(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	switch {
	case req.GetPods().GetActive() > 0 || req.GetInFlight().GetCreates() > 0:
	case later(deferredUntil(req, jobpolicyv1.Step_STEP_CREATE_PODS), req.GetNow()):
		d.RequeueTime = deferredUntil(req, jobpolicyv1.Step_STEP_CREATE_PODS)
	default:
		d.Disposition, d.Create = jobpolicyv1.Disposition_DISPOSITION_APPLY, &jobpolicyv1.CreatePods{Count: 1}
	}
	return d, nil
}
