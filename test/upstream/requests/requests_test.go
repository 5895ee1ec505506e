package requests

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // Defaults and conversions of Jobs.
	"k8s.io/kubernetes/pkg/apis/batch/validation"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // Those of their pod templates.
	jobstrategy "k8s.io/kubernetes/pkg/registry/batch/job"
	"pgregory.net/rapid"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/engine"
	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// judge is a Decider that only looks at whether a request is valid. It asks for
// rows of active pods, and settles every Job then.
type judge struct {
	executor.Decider
	mu    sync.Mutex
	asked map[string]chan error // By the Job's UID.
}

func (j *judge) DecideJob(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	_, err := engine.DecideJob(req)
	if err == nil {
		_, err = proto.Marshal(req)
	}
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	if err == nil && req.GetActivePods() == nil {
		d.Disposition = jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE
		return d, nil
	}
	j.outcome(string(req.GetJob().GetUid())) <- err
	return d, nil
}

func (j *judge) outcome(uid string) chan error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.asked[uid] == nil {
		j.asked[uid] = make(chan error, 100)
	}
	return j.asked[uid]
}

func TestEveryRequestOfTheExecutorIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var objects []runtime.Object
		var uids []types.UID
		for n := range rapid.IntRange(1, 5).Draw(t, "jobs") {
			d := &drawer{T: t, n: n}
			job := d.job()
			checkAdmitted(t, job)
			objects, uids = append(objects, job), append(uids, job.UID)
			for range rapid.IntRange(0, 5).Draw(t, "pods") {
				objects = append(objects, d.pod(job))
			}
		}
		verdicts := &judge{asked: map[string]chan error{}}
		defer runExecutor(t, executor.Config{
			Common: executor.Common{
				Decider: verdicts, Client: fake.NewClientset(objects...), Telemetry: executor.Telemetry{Logger: slog.New(slog.DiscardHandler)},
			},
		})()
		for _, uid := range uids {
			verdicts.await(t, uid)
		}
	})
}

// await fails unless every request about the Job was valid.
func (j *judge) await(t *rapid.T, job types.UID) {
	t.Helper()
	uid, err := wire.UIDBytes(job)
	must.Succeed(t, err)
	select {
	case err := <-j.outcome(string(uid)):
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the executor asks nothing")
	}
}

// runExecutor runs an Executor until stop is called.
func runExecutor(t *rapid.T, cfg executor.Config) (stop func()) {
	t.Helper()
	e, err := executor.New(cfg)
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

// checkAdmitted holds a drawn Job against the API server's own checks: one that
// it would refuse shows nothing.
func checkAdmitted(t *rapid.T, job *batchv1.Job) {
	t.Helper()
	defaulted, internal := job.DeepCopy(), &batch.Job{}
	legacyscheme.Scheme.Default(defaulted)
	must.Succeed(t, legacyscheme.Scheme.Convert(defaulted, internal, nil))
	ctx := genericapirequest.WithRequestInfo(context.Background(), &genericapirequest.RequestInfo{
		APIGroup: batchv1.SchemeGroupVersion.Group, APIVersion: batchv1.SchemeGroupVersion.Version,
	})
	problems := rest.ValidateCreate(ctx, internal, jobstrategy.Strategy)
	before := internal.DeepCopy()
	before.Status = batch.JobStatus{}
	problems = append(problems, validation.ValidateJobUpdateStatus(internal, before, validation.JobStatusValidationOptions{
		RejectInvalidCompletedIndexes: true, RejectInvalidFailedIndexes: true, RejectMoreReadyThanActivePods: true,
		RejectCompletedIndexesForNonIndexedJob: true, RejectFailedIndexesForNoBackoffLimitPerIndex: true,
	})...)
	if len(problems) > 0 {
		t.Fatal(fmt.Errorf("the API server would refuse the job: %w", problems.ToAggregate()))
	}
}
