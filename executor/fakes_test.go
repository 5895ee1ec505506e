package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func testUID(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012x", n)) }

// script is a Decider that answers with functions, one after the other; after
// the last it answers that everything is settled.
type script struct {
	mu      sync.Mutex
	answers []func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	asked   []*jobpolicyv1.DecideJobRequest
}

type answer = func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)

func (s *script) DecideJob(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req)
	if len(s.answers) == 0 {
		return &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next(req)
}

func (s *script) requests() []*jobpolicyv1.DecideJobRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*jobpolicyv1.DecideJobRequest(nil), s.asked...)
}

// applying answers with a decision that is to be carried out, and wants to be
// asked again soon.
func applying(d *jobpolicyv1.DecideJobResponse) answer {
	return func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		d.RequestId, d.Disposition = req.GetRequestId(), jobpolicyv1.Disposition_DISPOSITION_APPLY
		d.RequeueTime = req.GetNow()
		return d, nil
	}
}

// server is a clientset that gives out UIDs and resource versions as an API
// server does, and records the writes it is asked for.
type server struct {
	*fake.Clientset
	mu       sync.Mutex
	version  int
	writes   []string
	actions  []clienttesting.Action
	failures map[string]func(n int) error // By write; n counts the tries of it.
	tries    map[string]int
}

func newServer(objects ...runtime.Object) *server {
	s := &server{Clientset: fake.NewClientset(), version: 100, failures: map[string]func(int) error{}, tries: map[string]int{}}
	for _, o := range objects {
		s.stamp(o)
		if err := s.Tracker().Add(o); err != nil {
			panic(err)
		}
	}
	s.PrependReactor("*", "*", s.react)
	return s
}

func (s *server) stamp(o runtime.Object) {
	m, err := meta.Accessor(o)
	if err != nil {
		panic(err)
	}
	s.version++
	m.SetResourceVersion(strconv.Itoa(s.version))
	if m.GetUID() == "" {
		m.SetUID(testUID(0x1000 + s.version))
	}
	if m.GetName() == "" {
		m.SetName(m.GetGenerateName() + strconv.Itoa(s.version))
	}
	if m.GetCreationTimestamp().Time.IsZero() {
		m.SetCreationTimestamp(metav1.Now())
	}
}

func (s *server) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetResource().Resource == "events" || action.GetVerb() == "get" || action.GetVerb() == "list" || action.GetVerb() == "watch" {
		return false, nil, nil
	}
	write := action.GetVerb() + " " + action.GetResource().Resource
	if sub := action.GetSubresource(); sub != "" {
		write += "/" + sub
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, write)
	s.actions = append(s.actions, action)
	s.tries[write]++
	if fail := s.failures[write]; fail != nil {
		if err := fail(s.tries[write]); err != nil {
			return true, nil, err
		}
	}
	switch a := action.(type) {
	case clienttesting.CreateAction: // Updates are of this type, too.
		s.stamp(a.GetObject())
	case clienttesting.PatchActionImpl:
		return s.patch(a)
	}
	return false, nil, nil
}

// patch lets the tracker apply the patch, then gives the object a version. A patch
// that names a version is one of that version.
func (s *server) patch(a clienttesting.PatchActionImpl) (bool, runtime.Object, error) {
	var named struct {
		Metadata struct{ ResourceVersion string }
	}
	must(json.Unmarshal(a.GetPatch(), &named))
	current, err := s.Tracker().Get(a.GetResource(), a.GetNamespace(), a.GetName())
	if err != nil {
		return true, nil, err
	}
	m, err := meta.Accessor(current)
	must(err)
	if v := named.Metadata.ResourceVersion; v != "" && v != m.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), a.GetName(), errors.New("newer"))
	}
	handled, obj, err := clienttesting.ObjectReaction(s.Tracker())(a)
	if err != nil || !handled {
		return handled, obj, err
	}
	s.stamp(obj)
	return true, obj, s.Tracker().Update(a.GetResource(), obj, a.GetNamespace())
}

func (s *server) done() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.writes...)
}

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

// leanPod is what is kept of testPod.
func leanPod(n int, change ...func(*corev1.Pod)) *podcache.Pod {
	return podcache.From(testPod(n, change...))
}

func holdsFinalizer(pod *corev1.Pod) bool { return podcache.From(pod).HasTrackingFinalizer }

func testConfig(client *server, decider Decider) Config {
	return Config{
		Client: client, Decider: decider,
		SyncBatchPeriod: 5 * time.Millisecond, APIBackoff: 20 * time.Millisecond, MaxAPIBackoff: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler), TracerProvider: noop.NewTracerProvider(),
	}
}

// start makes an Executor and runs it for the length of the test.
func start(t *testing.T, cfg Config) *Executor {
	t.Helper()
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, e)
	return e
}

// run runs an Executor for the length of the test.
func run(t *testing.T, e *Executor) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("run does not end")
		}
	})
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (s *server) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod, err := s.CoreV1().Pods("ns").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("pod %s: %v", name, err)
	}
	return pod
}
