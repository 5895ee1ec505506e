package executor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

// A quota may admit one pod at a time. Only attempts in a row that create nothing lengthen
// the delay.
func TestCreationBackoffGrowsOnlyWhileNothingIsCreated(t *testing.T) {
	var b tracker.Job
	limits := clock.Limits{First: time.Second, Max: time.Minute}
	fail := func() time.Duration { return b.StepFailed(tracker.Create, limits) }
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := fail(); got != want {
			t.Errorf("the delay is %v, want %v", got, want)
		}
	}
	b.StepMayGoOn(tracker.Create)
	if !b.StepWaitsUntil(tracker.Create).IsZero() {
		t.Error("creation still backs off after a pod was created or has ended")
	}
	if got := fail(); got != time.Second {
		t.Errorf("the delay is %v after progress, want %v", got, time.Second)
	}
}

// What was refused may not be asked for any more: the Job was suspended, resumed, or got another template
// (kubernetes/kubernetes#139917). A status ends no delay.
func TestTheDelaysOfStepsEndWhenTheSpecChanges(t *testing.T) {
	job := testJob()
	job.ResourceVersion, job.Generation = "1", 1
	s := tracker.New(tracker.KeyOf(job), limit.NewPool(limit.Config{Total: 1, PerJob: 1}))
	s.Observe(job, tracker.Watch)
	for _, tc := range []struct {
		source     tracker.Source
		generation int64
		ends       bool
	}{{tracker.Watch, 1, false}, {tracker.Watch, 2, true}, {tracker.Response, 3, true}, {tracker.Written, 4, true}} {
		for _, step := range []tracker.Step{tracker.Create, tracker.Delete} {
			s.StepFailed(step, clock.Limits{First: time.Minute, Max: time.Hour})
		}
		s.Refusals.Refused(writes.CreatePod, "", time.Now(), "quota")
		job = job.DeepCopy()
		job.ResourceVersion, job.Generation, job.Status.Active = job.ResourceVersion+"0", tc.generation, int32(tc.generation)
		s.Observe(job, tc.source)
		for _, step := range []tracker.Step{tracker.Create, tracker.Delete} {
			if got := s.StepWaitsUntil(step).IsZero(); got != tc.ends {
				t.Errorf("generation %d: the delay of step %d has ended: %v, want %v", tc.generation, step, got, tc.ends)
			}
		}
		if got := len(s.Refusals.Standing()) == 0; got != tc.ends {
			t.Errorf("generation %d: the refusal is forgotten: %v, want %v", tc.generation, got, tc.ends)
		}
	}
}

// If one of two releases succeeds, the Job's backoff does not grow. If none succeeds, it
// grows.
func TestAReconcileThatMadeProgressIsRetriedSoon(t *testing.T) {
	const reconciles = 4
	refused := apierrors.NewTooManyRequests("later", 1)
	release := func(k int) *jobpolicyv1.DecideJobResponse {
		return &jobpolicyv1.DecideJobResponse{Release: uidsOf(t, 2*k+2, 2*k+3)}
	}
	cases := map[string]struct {
		decision func(k int) *jobpolicyv1.DecideJobResponse
		every    int             // of so many tries of a release, one succeeds
		want     []time.Duration // between the reconciles
	}{
		"one of two releases fails": {
			decision: release, every: 2,
			want: []time.Duration{time.Second, time.Second, time.Second},
		},
		"the status is written, and every release fails": {
			decision: func(k int) *jobpolicyv1.DecideJobResponse {
				d := release(k)
				d.Status = recorded(t, k+2)
				return d
			},
			every: 100, want: []time.Duration{time.Second, time.Second, time.Second},
		},
		"a pod is created, and every release fails": {
			decision: func(k int) *jobpolicyv1.DecideJobResponse {
				d := release(k)
				d.Create = &jobpolicyv1.CreatePods{Count: 1}
				return d
			},
			every: 100, want: []time.Duration{time.Second, time.Second, time.Second},
		},
		"every release fails": {
			decision: release, every: 100,
			want: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{testJob()}
			for n := range 2 * reconciles {
				objects = append(objects, testPod(n+2))
			}
			s := newServer(objects...)
			s.Failures["patch pods"] = func(n int) error {
				if n%tc.every == 0 {
					return nil
				}
				return refused
			}
			decider := &script{}
			var asked []time.Time
			for k := range reconciles {
				decider.Answers = append(decider.Answers, func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
					asked = append(asked, time.Now())
					return applying(tc.decision(k))(req)
				})
			}
			cfg := testConfig(s, decider)
			cfg.APIBackoff, cfg.MaxAPIBackoff = time.Second, time.Minute
			runFor(t, cfg, time.Minute)
			var got []time.Duration
			for k := range reconciles - 1 {
				got = append(got, asked[k+1].Sub(asked[k]).Round(time.Second))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("delays between reconciles (-want +got):\n%s", diff)
			}
		})
	}
}

// An overloaded engine answers with the same code as one for which the message is too large,
// but with another reason. The client and proxies give no reason.
func TestOnlyARequestThatIsTooLargeIsCut(t *testing.T) {
	ask := func(reason string) *tracker.Job {
		st := status.New(codes.ResourceExhausted, "refused")
		if reason != "" {
			var err error
			if st, err = st.WithDetails(&errdetails.ErrorInfo{Domain: jobpolicyv1grpc.ErrorDomain, Reason: reason}); err != nil {
				t.Fatal(err)
			}
		}
		refusing := &script{Answers: []reply{func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) { return nil, st.Err() }}}
		e := build(t, testConfig(newServer(), refusing))
		s := tracker.New(testKey, limit.NewPool(limit.Config{Total: 1, PerJob: 1}))
		req := &jobpolicyv1.DecideJobRequest{UnaccountedPods: make([]*jobpolicyv1.UnaccountedPod, 3*leastRows)}
		for i := range req.UnaccountedPods {
			req.UnaccountedPods[i] = &jobpolicyv1.UnaccountedPod{}
		}
		if _, err := e.decider.ask(t.Context(), s, snapshot{job: testJob(), req: req}, toApply); !errors.Is(err, controller.ErrEngine) {
			t.Errorf("ask() = %v, want %v", err, controller.ErrEngine)
		}
		return s
	}
	for _, reason := range []string{"OVERLOADED", "CALLER_OVER_SHARE", "UNREAD_ANSWERS"} {
		if s := ask(reason); s.MaxRows(4*leastRows) != 4*leastRows {
			t.Errorf("after a refusal for %s, %d pods are listed at most", reason, s.MaxRows(4*leastRows))
		}
	}
	for _, reason := range []string{"REQUEST_TOO_LARGE", "ANSWER_TOO_LARGE", ""} {
		if s := ask(reason); s.MaxRows(4*leastRows) != 3*leastRows/2 {
			t.Errorf("after a refusal for %q, %d pods are listed at most, want half of %d", reason, s.MaxRows(4*leastRows), 3*leastRows)
		}
	}
	s := ask("")
	s.RowsRefused(leastRows, leastRows)
	if s.MaxRows(4*leastRows) != leastRows {
		t.Errorf("%d pods are listed at most, want no fewer than %d", s.MaxRows(4*leastRows), leastRows)
	}
	s.RowsAccepted(leastRows, 3*leastRows)
	if s.MaxRows(4*leastRows) != leastRows {
		t.Error("the list is as long as it may be, and is not cut any more")
	}
	s.RowsAccepted(leastRows-1, 3*leastRows)
	if s.MaxRows(4*leastRows) != 4*leastRows {
		t.Error("the list is shorter than it may be, and is still cut")
	}
}

// If a webhook refuses the deletion of a pod, other pods are not delayed: finished ones are
// counted and released, and the deletion is tried again later.
func TestAPodThatCannotBeDeletedDelaysNothingElse(t *testing.T) {
	s := newServer(testJob(), testPod(2), testPod(3), testPod(4, failedPhase))
	s.Failures["delete pods"] = fakes.FailFirst(1, apierrors.NewInternalError(errors.New("admission webhook denied the request")))
	uids := uidsOf(t, 2, 3)
	decider := &script{Answers: []reply{
		applying(&jobpolicyv1.DecideJobResponse{Delete: []*jobpolicyv1.DeletePod{{Uid: uids[0]}, {Uid: uids[1]}}, Status: recorded(t, 9)}),
		applying(&jobpolicyv1.DecideJobResponse{Status: recorded(t, 4), Release: uidsOf(t, 4)}),
	}}
	e := start(t, testConfig(s, decider))
	decider.Await(t, 3)
	requests := decider.Requests()
	if deferredUntil(requests[0], jobpolicyv1.Step_STEP_DELETE_PODS) != nil {
		t.Error("deletion is deferred before any failed")
	}
	if at := deferredUntil(requests[1], jobpolicyv1.Step_STEP_DELETE_PODS); at == nil || !at.AsTime().After(requests[0].GetNow().AsTime()) {
		t.Errorf("after a failed deletion, deletions are left until %v", at)
	}
	s.WantWrites(t, "delete pods", "delete pods", "update jobs/status", "patch pods")
	if until := e.queue.State(testKey).BackoffUntil; !until.IsZero() {
		t.Errorf("the Job backs off until %v, want only its deletions to", until)
	}
}

// The deletion of one finished pod is refused each time, while other pods of the Job finish and are deleted. It is tried again
// after a delay that doubles all the same.
func TestAFinishedPodThatCannotBeDeletedBacksOffInABusyJob(t *testing.T) {
	finishedPod := func(n int) *corev1.Pod {
		return testPod(n, failedPhase, func(p *corev1.Pod) { p.Finalizers = nil })
	}
	server := newServer(testJob(keepsNone), finishedPod(2))
	tries := 0
	server.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.(clienttesting.DeleteAction).GetName() != "pod-2" {
			return false, nil, nil
		}
		tries++
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "pod-2", errors.New("on purpose"))
	})
	cfg := testConfig(server, &script{Otherwise: deletingFinished})
	cfg.APIBackoff, cfg.MaxAPIBackoff = time.Second, time.Minute
	inBubble(t, cfg, nil, func(t *testing.T, _ *Executor) {
		for n := range 300 {
			time.Sleep(time.Second)
			if err := server.Tracker().Add(finishedPod(n + 3)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
	})
	if tries < 5 || tries > 12 {
		t.Errorf("%d tries in 5 minutes, want 5 to 12", tries)
	}
}

// A pod that is gone made room for another one, unless it had ended: then its end did. A quota may count pods that have ended, too.
func TestAPodThatIsGoneMayHaveMadeRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     func(*corev1.Pod)
		refusal string
		ends    bool
	}{
		"it was active":                      {func(*corev1.Pod) {}, "boom", true},
		"it had ended":                       {failedPhase, "boom", false},
		"it had ended, quota of pods":        {failedPhase, "exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5", false},
		"it had ended, quota of all objects": {failedPhase, "exceeded quota: q, requested: count/pods=1, used: count/pods=5, limited: count/pods=5", true},
	} {
		t.Run(name, func(t *testing.T) {
			e := build(t, testConfig(newServer(), &script{}))
			s := seeJob(e)
			e.watcher.podSeen(nil, cachedPod(2, tc.pod))
			s.StepFailed(tracker.Create, clock.Limits{First: time.Minute, Max: time.Hour})
			for range 3 {
				s.Refusals.Refused(writes.CreatePod, "", time.Now(), tc.refusal)
			}
			e.watcher.podGone(cachedPod(2, tc.pod))
			if ends := s.StepWaitsUntil(tracker.Create).IsZero(); ends != tc.ends {
				t.Errorf("the delay of creations has ended: %v, want %v", ends, tc.ends)
			}
		})
	}
}

// The API server may refuse a pod because of a namespace that was deleted and is
// there again.
func TestANamespaceIsGoingOnlyIfItIs(t *testing.T) {
	now := metav1.Now()
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("namespace ns is being terminated"))
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		namespace *corev1.Namespace
		want      bool
	}{
		"it is gone":               {nil, true},
		"it is being deleted":      {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: &now, Finalizers: []string{"kubernetes"}}}, true},
		"it is another one by now": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{testJob()}
			if tc.namespace != nil {
				objects = append(objects, tc.namespace)
			}
			s := newServer(objects...)
			s.Failures["create pods"] = func(int) error { return refused }
			decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}})}}
			start(t, testConfig(s, decider))
			first, second := decider.Await(t, 1), decider.Await(t, 2)
			if got := second.GetNamespaceDeleting(); got != tc.want || first.GetNamespaceDeleting() {
				t.Errorf("the Job goes with its namespace: %t at first, then %t; want false, %t", first.GetNamespaceDeleting(), got, tc.want)
			}
			if deferredUntil(second, jobpolicyv1.Step_STEP_CREATE_PODS) == nil {
				t.Error("creation is not deferred")
			}
		})
	}
}
