package executor

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A status that is refused because somebody else has changed the Job is decided on again at once, a few
// times. A conflict that has another cause backs off, and so does one after the other.
func TestAfterAConflictTheJobIsDecidedOnAtOnceIfItHasChanged(t *testing.T) {
	changed := func(s *server, n int) {
		s.put(testJob(func(j *batchv1.Job) { j.Labels = map[string]string{"changed": time.Now().String()} }))
	}
	for name, tc := range map[string]struct {
		conflicts int                    // How many writes in a row end with a conflict.
		change    func(s *server, n int) // What else happens then.
		want      int                    // Writes in the first half second.
	}{
		"somebody has changed the Job":     {conflicts: 1, change: changed, want: 2},
		"somebody changes it twice":        {conflicts: 2, change: changed, want: 3},
		"somebody changes it all the time": {conflicts: 1000, change: changed, want: 4},
		"nobody has changed it":            {conflicts: 1000, change: func(*server, int) {}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(testJob())
			var writes atomic.Int64
			server.Failures["update jobs/status"] = func(n int) error {
				writes.Store(int64(n))
				if n > tc.conflicts {
					return nil
				}
				tc.change(server, n)
				return apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "job", errors.New("newer"))
			}
			counts := func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
				if req.GetStatus().GetFailed() > 0 {
					return settled(req, 0), nil
				}
				return applying(&jobpolicyv1.DecideJobResponse{Status: &jobpolicyv1.JobStatus{Failed: 1}})(req)
			}
			cfg := testConfig(server, &script{Otherwise: counts})
			cfg.APIBackoff, cfg.MaxAPIBackoff = time.Second, time.Minute
			inBubble(t, cfg, nil, func(t *testing.T, _ *Executor) {
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if n := int(writes.Load()); n != tc.want {
					t.Errorf("%d status writes in half a second, want %d", n, tc.want)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if n, most := int(writes.Load()), tc.want+4; n > most {
					t.Errorf("%d status writes in ten seconds, want at most %d", n, most)
				}
			})
		})
	}
}

// The watch shows that the Job's pods are deleted before it shows that the Job is. The verdict that
// rests on that is refused, because the Job has another version by then, and the next
// decision is about the Job that is being deleted.
func TestAVerdictOnAJobWhoseDeletionIsNotSeenYetIsDecidedAgain(t *testing.T) {
	server := newServer(testJob(), testPod(2))
	server.Failures["update jobs/status"] = func(n int) error {
		if n > 1 {
			return nil
		}
		server.put(testJob(func(j *batchv1.Job) {
			j.DeletionTimestamp, j.Finalizers = &metav1.Time{Time: time.Now()}, []string{metav1.FinalizerDeleteDependents}
		}))
		return apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "job", errors.New("newer"))
	}
	decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{Status: &jobpolicyv1.JobStatus{Failed: 1}})}}
	inBubble(t, testConfig(server, decider), nil, func(t *testing.T, _ *Executor) {
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		requests := decider.Requests()
		if n := len(requests); n < 2 || requests[0].GetSpec().GetDeleting() || !requests[1].GetSpec().GetDeleting() {
			t.Errorf("%d decisions, want a second one at once that knows of the deletion", n)
		}
	})
}
