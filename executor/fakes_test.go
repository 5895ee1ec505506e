package executor

import (
	"context"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func testUID(n int) types.UID { return fakes.UID(n) }

// testKey is that of testJob.
var testKey = tracker.Key{Namespace: "ns", UID: testUID(1)}

type (
	script = fakes.Script[*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse]
	reply  = func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
)

// answering answers with a decision.
func answering(d *jobpolicyv1.DecideJobResponse) reply {
	return func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) { return d, nil }
}

// failing answers with an error.
func failing(code codes.Code, message string) reply {
	return func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		return nil, status.Error(code, message)
	}
}

// applying answers with a decision that is to be carried out, and wants to be
// asked again soon.
func applying(d *jobpolicyv1.DecideJobResponse) reply {
	return func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		d.RequestId, d.Disposition = req.GetRequestId(), jobpolicyv1.Disposition_DISPOSITION_APPLY
		d.RequeueTime = req.GetNow()
		return d, nil
	}
}

// server is the fakes' API server.
type server struct{ *fakes.Server }

func newServer(objects ...runtime.Object) *server { return &server{fakes.NewServer(objects...)} }

func testJob(change ...func(*batchv1.Job)) *batchv1.Job {
	manager := ManagedBy
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: testUID(1), Generation: 1},
		Spec: batchv1.JobSpec{
			ManagedBy: &manager,
			Selector:  &metav1.LabelSelector{MatchLabels: map[string]string{"job": "1"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"job": "1"}},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c"}}},
			},
		},
	}
	for _, f := range change {
		f(job)
	}
	return job
}

func unmanaged(job *batchv1.Job) { job.Spec.ManagedBy = new("example.com/other") }

func finished(job *batchv1.Job) {
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
}

// keptWhileDeleted is a Job that is being deleted, and that somebody else's finalizer keeps.
func keptWhileDeleted(job *batchv1.Job) {
	job.DeletionTimestamp, job.DeletionGracePeriodSeconds, job.Finalizers = new(metav1.Now()), new(int64(0)), []string{"example.com/hold"}
}

// seeJob lets an Executor see version 1 of the Job.
func seeJob(e *Executor) *tracker.Job {
	job := testJob(func(j *batchv1.Job) { j.ResourceVersion = "1" })
	return e.jobs.With(testKey, func(s *tracker.Job) { s.Observe(job, tracker.Watch) })
}

func failedPhase(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }

// loose is a pod without an owner, and stray one that the Job does not select.
func loose(pod *corev1.Pod) { pod.OwnerReferences = nil }

func stray(pod *corev1.Pod) { pod.Labels = nil }

// unclaimed is a pod that no Job has adopted yet.
func unclaimed(pod *corev1.Pod) { pod.OwnerReferences, pod.Finalizers = nil, nil }

func testPod(n int, change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pod-" + strconv.Itoa(n), Namespace: "ns", UID: testUID(n), Labels: map[string]string{"job": "1"},
			Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: testUID(1), Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// cachedPod is what is kept of testPod.
func cachedPod(n int, change ...func(*corev1.Pod)) *podcache.Pod {
	return podcache.From(testPod(n, change...))
}

func hasFinalizer(pod *corev1.Pod) bool { return podcache.From(pod).HasTrackingFinalizer }

func testConfig(client *server, decider Decider) Config {
	cfg := Config{Common: fakes.Config(client, decider), SyncBatchPeriod: 5 * time.Millisecond}
	cfg.APIBackoff, cfg.MaxAPIBackoff = 20*time.Millisecond, 100*time.Millisecond
	return cfg
}

func build(t testing.TB, cfg Config) *Executor {
	t.Helper()
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// start makes an Executor and runs it for the length of the test.
func start(t *testing.T, cfg Config) *Executor {
	t.Helper()
	e := build(t, cfg)
	run(t, e)
	return e
}

// run runs an Executor for the length of the test.
func run(t *testing.T, e *Executor) {
	t.Helper()
	fakes.Run(t, e.Run)
}

var eventually = fakes.Eventually

func (s *server) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod, err := s.CoreV1().Pods("ns").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("pod %s: %v", name, err)
	}
	return pod
}

// deferredUntil is the time before which the request forbids a step; nil if it does not
// forbid it.
func deferredUntil(req *jobpolicyv1.DecideJobRequest, step jobpolicyv1.Step) *timestamppb.Timestamp {
	for _, d := range req.GetDeferrals() {
		if d.GetStep() == step {
			return d.GetUntil()
		}
	}
	return nil
}

// later reports whether at is set and is after than.
func later(at, than *timestamppb.Timestamp) bool {
	return at != nil && at.AsTime().After(than.AsTime())
}
