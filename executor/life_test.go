package executor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/fakes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestAReconcileInProgressIsFinishedWhenRunIsStopped(t *testing.T) {
	s := newServer(testJob(), testPod(2, failedPhase))
	ctx, stop := context.WithCancel(context.Background())
	s.Failures["create pods"] = func(int) error { stop(); return nil }
	decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{
		Create: &jobpolicyv1.CreatePods{Count: 1}, Status: recorded(t, 2), Release: uidsOf(t, 2),
	})}}
	e := build(t, testConfig(s, decider))
	if err := e.Ready(); !errors.Is(err, controller.ErrNotReady) {
		t.Errorf("before Run: got %v, want controller.ErrNotReady", err)
	}
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
	s.WantWrites(t, "create pods", "update jobs/status", "patch pods")
	if n := len(decider.Requests()); n != 1 {
		t.Errorf("%d questions, want 1: no new reconcile begins after the stop", n)
	}
	if err := e.Run(ctx); !errors.Is(err, controller.ErrStarted) {
		t.Errorf("second Run: got %v, want controller.ErrStarted", err)
	}
}

func TestTheJobIsReadBeforeDecidingAgainWhenTheOutcomeOfAWriteIsOpen(t *testing.T) {
	cases := map[string]error{
		"a conflict":        apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "job", errors.New("newer")),
		"a lost connection": errors.New("connection lost"),
		"a server error":    apierrors.NewInternalError(errors.New("boom")),
	}
	for name, failure := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(testJob())
			s.Failures["update jobs/status"] = fakes.FailFirst(1, failure)
			reads := s.Count("get", "jobs")
			decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{Status: &jobpolicyv1.JobStatus{Failed: 1}})}}
			start(t, testConfig(s, decider))
			decider.Await(t, 2)
			if reads() == 0 {
				t.Error("the Job was not read")
			}
		})
	}
}

func TestPodsAreListedWhenSomebodyElseKeepsTheJobsBooks(t *testing.T) {
	s := newServer(testJob(), testPod(2, failedPhase))
	decider := &script{}
	start(t, testConfig(s, decider))
	decider.Await(t, 1)
	lists := s.Count("list", "pods")
	s.put(testJob(func(j *batchv1.Job) { j.Status.Failed = 1 }))
	eventually(t, "question about the new status", func() bool {
		return slices.ContainsFunc(decider.Requests(), func(r *jobpolicyv1.DecideJobRequest) bool { return r.GetStatus().GetFailed() == 1 })
	})
	if lists() == 0 {
		t.Error("a decision was asked for before the pods were listed")
	}
}

func TestARequeueTimeIsHonoured(t *testing.T) {
	s := newServer(testJob())
	decider := &script{Answers: []reply{func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		// A time in the past must not make a hot loop either.
		return &jobpolicyv1.DecideJobResponse{
			RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, RequeueTime: req.GetNow(),
		}, nil
	}}}
	cfg := testConfig(s, decider)
	cfg.SyncBatchPeriod = 50 * time.Millisecond
	start(t, cfg)
	decider.Await(t, 2)
	first, second := decider.Requests()[0].GetNow().AsTime(), decider.Requests()[1].GetNow().AsTime()
	if gap := second.Sub(first); gap < cfg.SyncBatchPeriod {
		t.Errorf("asked again after %v, want at least the batch period", gap)
	}
}

func TestConfigsThatCannotWorkAreRefused(t *testing.T) {
	cases := map[string]struct {
		spoil func(*Config)
		want  string
	}{
		"no client":  {spoil: func(c *Config) { c.Client = nil }, want: "no Client"},
		"no decider": {spoil: func(c *Config) { c.Decider = nil }, want: "no Decider"},
		"a negative limit": {
			spoil: func(c *Config) { c.Settings = &jobpolicyv1.Settings{MaxUncountedPods: -1} },
			want:  "MaxUncountedPods",
		},
		"negative writes":   {spoil: func(c *Config) { c.Writes.PerJob = -1 }, want: "Writes.PerJob"},
		"a negative period": {spoil: func(c *Config) { c.SyncBatchPeriod = -1 }, want: "SyncBatchPeriod"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(newServer(), &script{})
			tc.spoil(&cfg)
			if _, err := New(cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New() = %v, want ErrConfig with %q", err, tc.want)
			}
		})
	}
}

func TestBesideJobsNeedsSomethingToRun(t *testing.T) {
	b, err := NewBesideJobs(testConfig(newServer(), &script{}))
	if b != nil || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "FinishedJobs") {
		t.Errorf("NewBesideJobs() = %v, %v; want an ErrConfig that names what is missing", b, err)
	}
}

func TestCreationsDoNotUseUpTheVerdictsEvents(t *testing.T) {
	s := newServer(testJob())
	start(t, testConfig(s, &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{
		Create: &jobpolicyv1.CreatePods{Count: 100},
		Events: []*jobpolicyv1.JobEvent{{Type: jobpolicyv1.EventType_EVENT_TYPE_NORMAL, Reason: "Completed", Message: "Job completed"}},
	})}}))
	s.AwaitEvent(t, "Completed")
}

// An admission webhook that hangs on the pods of one Job.
func TestAClaimThatHangsKeepsNoOtherJobWaiting(t *testing.T) {
	hanging, end := make(chan struct{}), make(chan struct{})
	s := newServer(testJob(), testPod(2, func(p *corev1.Pod) { p.Labels = nil }))
	s.Failures["patch pods"] = func(int) error {
		close(hanging)
		<-end
		return nil
	}
	decider := &script{}
	cfg := testConfig(s, decider)
	cfg.Workers = 1
	start(t, cfg)
	defer close(end)
	<-hanging
	other := testJob(func(j *batchv1.Job) { j.Name, j.UID, j.ResourceVersion = "other", testUID(9), "900" })
	if err := s.Tracker().Add(other); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a question about the other Job", func() bool {
		return slices.ContainsFunc(decider.Requests(), func(req *jobpolicyv1.DecideJobRequest) bool { return req.GetJob().GetName() == "other" })
	})
}
