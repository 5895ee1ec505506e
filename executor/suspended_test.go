package executor

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// suspending is an engine's answer about a suspended Job that never ran: the status that
// announces the suspension is deferred.
func suspending(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d := settled(req, 0)
	switch {
	case len(req.GetStatus().GetConditions()) > 0 || req.GetStatus().GetStartTime() != nil:
		return d, nil
	case !req.GetSpec().GetSuspend():
		d.Status = &jobpolicyv1.JobStatus{StartTime: req.GetNow()}
	case later(deferredUntil(req, jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS), req.GetNow()):
		d.RequeueTime = deferredUntil(req, jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS)
		return d, nil
	default:
		d.Status = &jobpolicyv1.JobStatus{Conditions: []*jobpolicyv1.JobCondition{{
			Type: string(batchv1.JobSuspended), Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE, LastTransitionTime: req.GetNow(), LastProbeTime: req.GetNow(),
		}}}
	}
	d.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
	return d, nil
}

// A queue controller creates a Job suspended and updates it at once. No status
// comes in between, and when the Job is resumed, it starts at once.
func TestWhatOnlySaysSuspendedIsNotInTheWayOfAnUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		resumedAfter time.Duration // 0: never
		want         time.Duration // of the first status, after the Job was created
	}{
		"it stays suspended":             {0, 100 * time.Millisecond},
		"it is resumed while that waits": {50 * time.Millisecond, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer()
			var begun time.Time
			var wrote []time.Duration
			seen := false
			server.Failures["update jobs/status"] = func(int) error {
				wrote = append(wrote, time.Since(begun).Round(50*time.Millisecond))
				return nil
			}
			cfg := testConfig(server, &script{Otherwise: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
				seen = seen || req.GetSeenSuspended()
				return suspending(req)
			}})
			inBubble(t, cfg, nil, func(t *testing.T, _ *Executor) {
				time.Sleep(10 * time.Second)
				begun = time.Now()
				job := testJob(func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
				created, err := server.BatchV1().Jobs("ns").Create(t.Context(), job, metav1.CreateOptions{})
				must(err)
				if tc.resumedAfter > 0 {
					time.Sleep(tc.resumedAfter)
					created.Spec.Suspend, created.Generation = new(false), 2
					_, err = server.BatchV1().Jobs("ns").Update(t.Context(), created, metav1.UpdateOptions{})
					must(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
			})
			if !slices.Equal(wrote, []time.Duration{tc.want}) {
				t.Errorf("statuses were written %v after the Job was created, want one after %v", wrote, tc.want)
			}
			if resumed := tc.resumedAfter > 0; seen != resumed {
				t.Errorf("a request says that the Job was seen suspended before: %t, want %t", seen, resumed)
			}
		})
	}
}
