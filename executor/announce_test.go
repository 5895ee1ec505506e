package executor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/internal/fakes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// finishing answers that a Job fails at once.
func finishing(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	if len(req.GetStatus().GetConditions()) == 0 {
		d.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
		d.Status = &jobpolicyv1.JobStatus{StartTime: req.GetNow(), Conditions: []*jobpolicyv1.JobCondition{{
			Type: string(batchv1.JobFailed), Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE, Reason: "BackoffLimitExceeded",
			Message: "too many", LastTransitionTime: req.GetNow(), LastProbeTime: req.GetNow(),
		}}}
		d.Events = []*jobpolicyv1.JobEvent{{Type: jobpolicyv1.EventType_EVENT_TYPE_WARNING, Reason: "BackoffLimitExceeded", Message: "too many"}}
	}
	return d, nil
}

// underWay is what the newest write wants to write.
func (s *server) underWay() *batchv1.Job {
	return s.Writes()[len(s.Writes())-1].(clienttesting.UpdateAction).GetObject().(*batchv1.Job).DeepCopy()
}

// take lets the newest write take effect.
func (s *server) take() *batchv1.Job {
	job := s.underWay()
	s.put(job)
	return job
}

// put is a change by somebody else.
func (s *server) put(job *batchv1.Job) {
	s.replace(jobResource, job)
}

// byAnother is the Job with a status that another controller has written.
func byAnother(job *batchv1.Job) *batchv1.Job {
	job = job.DeepCopy()
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: "example.com/Seen", Status: corev1.ConditionTrue})
	return job
}

// An endCase is what becomes of the status write that declares a Job's end.
type endCase struct {
	write func(s *server, n int) error // n counts the tries.
	read  func(n int) error
	want  int
}

func endEach(t *testing.T, cases map[string]endCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(testJob())
			if tc.write != nil {
				server.Failures["update jobs/status"] = func(n int) error { return tc.write(server, n) }
			}
			reads := 0
			server.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
				reads++
				if tc.read == nil {
					return false, nil, nil
				}
				err := tc.read(reads)
				return err != nil, nil, err
			})
			cfg, registry := testConfig(server, &script{Otherwise: finishing}), prometheus.NewRegistry()
			cfg.Registerer, cfg.APIBackoff, cfg.MaxAPIBackoff = registry, time.Second, time.Minute
			told := record.NewFakeRecorder(100)
			inBubble(t, cfg, func(e *Executor) { e.base.Recorder = told }, func(t *testing.T, _ *Executor) {
				time.Sleep(5 * time.Minute)
				synctest.Wait()
			})
			if got := len(told.Events); got != tc.want {
				t.Errorf("%d events, want %d", got, tc.want)
			}
			finished := samples(t, registry, "job_controller_jobs_finished_total")
			want := map[string]float64{}
			if tc.want > 0 {
				want["{completion_mode=NonIndexed reason=BackoffLimitExceeded result=failed}"] = float64(tc.want)
			}
			if diff := cmp.Diff(want, finished); diff != "" {
				t.Errorf("jobs finished (-want +got):\n%s", diff)
			}
		})
	}
}

var (
	errLost     = errors.New("connection reset by peer")
	errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "job", errors.New("changed"))
)

// A Job's end is announced once, whatever happens to the status write.
func TestTheEndIsToldOnceThoughItsAnswerIsLost(t *testing.T) {
	endEach(t, map[string]endCase{
		"it is answered": {want: 1},
		"no answer, and it took effect": {
			write: func(s *server, _ int) error { s.take(); return errLost }, want: 1,
		},
		"no answer, it took effect, and somebody changes the status": {
			write: func(s *server, _ int) error { s.put(byAnother(s.take())); return errLost }, want: 1,
		},
		"no answer, it took effect, somebody changes the status, and reads fail": {
			write: func(s *server, _ int) error { s.put(byAnother(s.take())); return errLost },
			read:  fakes.FailFirst(2, errLost), want: 1,
		},
		"no answer, it took effect, and the Job is deleted": {
			write: func(s *server, _ int) error {
				job := s.take()
				must(s.Tracker().Delete(jobResource, job.Namespace, job.Name))
				return errLost
			}, want: 1,
		},
	})
}

func TestTheEndIsToldOnceThoughItsWriteIsLost(t *testing.T) {
	var late *batchv1.Job
	endEach(t, map[string]endCase{
		"no answer, and it was lost": {
			write: func(_ *server, n int) error {
				if n < 3 {
					return errLost
				}
				return nil
			}, want: 1,
		},
		"no answer, it was lost, and somebody changes the status": {
			write: func(s *server, n int) error {
				if n == 1 {
					s.put(byAnother(testJob()))
					return errLost
				}
				return nil
			}, want: 1,
		},
		"no answer, and it takes effect when it is tried again": {
			write: func(s *server, n int) error {
				if n == 1 {
					late = s.underWay()
					return errLost
				}
				s.put(byAnother(late))
				return errConflict
			}, want: 1,
		},
	})
}

func TestAnEndThatIsNotWrittenIsNotTold(t *testing.T) {
	endEach(t, map[string]endCase{
		"a conflict each time": {write: func(*server, int) error { return errConflict }},
		"it is refused": {write: func(*server, int) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "job", nil)
		}},
	})
}

// A status write gets no answer, and the Job that is read then has the status, and a new spec.
// The watch shows this version as one that is known. The Job is decided on again all the same.
func TestASpecThatIsReadAfterAnUnansweredWriteIsDecidedOn(t *testing.T) {
	server := newServer(testJob())
	server.Failures["update jobs/status"] = fakes.FailFirst(1, errLost)
	server.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		job := server.underWay()
		job.Generation, job.Spec.Parallelism = 2, ptr.To[int32](3)
		server.Stamp(job)
		return true, job, nil
	})
	decider := &script{Answers: []reply{func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		return &jobpolicyv1.DecideJobResponse{
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Status: &jobpolicyv1.JobStatus{StartTime: req.GetNow()},
		}, nil
	}}}
	inBubble(t, testConfig(server, decider), nil, func(t *testing.T, _ *Executor) {
		time.Sleep(time.Second)
		synctest.Wait()
	})
	asked := decider.Requests()
	if len(asked) != 2 || asked[1].GetSpec().GetParallelism() != 3 {
		t.Errorf("within a second, the engine is asked about %v; want the new spec", asked)
	}
}
