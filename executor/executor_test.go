package executor

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func uidsOf(t *testing.T, ns ...int) [][]byte {
	t.Helper()
	var out [][]byte
	for _, n := range ns {
		b, err := wire.UIDBytes(testUID(n))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func recorded(t *testing.T, ns ...int) *jobpolicyv1.JobStatus {
	t.Helper()
	return &jobpolicyv1.JobStatus{Uncounted: &jobpolicyv1.UncountedTerminatedPods{Failed: uidsOf(t, ns...)}}
}

func TestADecisionIsCarriedOutInTheOrderOfTheContract(t *testing.T) {
	s := newServer(testJob(), testPod(2, failedPhase))
	decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{
		Create: &jobpolicyv1.CreatePods{Count: 3}, Status: recorded(t, 2), Release: uidsOf(t, 2),
	})}}
	start(t, testConfig(s, decider))
	decider.Await(t, 2)
	s.WantWrites(t, "create pods", "create pods", "create pods", "update jobs/status", "patch pods")
	second := decider.Requests()[1]
	if diff := cmp.Diff(uidsOf(t, 2), second.GetConfirmedReleases()); diff != "" {
		t.Errorf("confirmed in the next snapshot (-want +got):\n%s", diff)
	}
	if got := second.GetPods().GetActive(); got != 3 {
		t.Errorf("next snapshot has %d active pods, want the 3 just created", got)
	}
	if len(second.GetUnaccountedPods()) != 0 || second.GetInFlight() != nil {
		t.Errorf("next snapshot still has rows %v, in flight %v", second.GetUnaccountedPods(), second.GetInFlight())
	}
}

func TestNothingComesAfterAStepThatFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota: q"))
	cases := map[string]struct {
		write  string
		fail   func(n int) error
		answer *jobpolicyv1.DecideJobResponse
		want   []string
	}{
		"a creation refused by quota stops the creations, the status and the release": {
			write: "create pods",
			fail:  func(n int) error { return forbidden },
			answer: &jobpolicyv1.DecideJobResponse{
				Create: &jobpolicyv1.CreatePods{Count: 50}, Status: recorded(t, 2), Release: uidsOf(t, 2),
			},
			want: []string{"create pods"},
		},
		"a deletion that fails keeps the status from being written": {
			write:  "delete pods",
			fail:   func(int) error { return apierrors.NewInternalError(errors.New("boom")) },
			answer: &jobpolicyv1.DecideJobResponse{Delete: []*jobpolicyv1.DeletePod{{Uid: uidsOf(t, 2)[0]}}, Status: recorded(t, 2)},
			want:   []string{"delete pods"},
		},
		"a status that is refused keeps the finalizers": {
			write: "update jobs/status",
			fail: func(int) error {
				return apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "job", errors.New("newer"))
			},
			answer: &jobpolicyv1.DecideJobResponse{Status: recorded(t, 2), Release: uidsOf(t, 2)},
			want:   []string{"update jobs/status"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(testJob(), testPod(2, failedPhase))
			s.Failures[tc.write] = tc.fail
			decider := &script{Answers: []reply{applying(tc.answer)}}
			start(t, testConfig(s, decider))
			decider.Await(t, 2)
			s.WantWrites(t, tc.want...)
			if !hasFinalizer(s.pod(t, "pod-2")) {
				t.Error("the pod lost its finalizer")
			}
		})
	}
}

// One more is in flight once the first has succeeded: up to two fail.
func TestNothingComesAfterACreationThatFailsInPart(t *testing.T) {
	s := newServer(testJob(), testPod(2, failedPhase))
	s.Failures["create pods"] = func(n int) error {
		if n == 1 {
			return nil
		}
		return apierrors.NewBadRequest("no")
	}
	decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{
		Create: &jobpolicyv1.CreatePods{Count: 50}, Status: recorded(t, 2), Release: uidsOf(t, 2),
	})}}
	start(t, testConfig(s, decider))
	decider.Await(t, 2)
	done := s.Done()
	if others := slices.DeleteFunc(slices.Clone(done), func(w string) bool { return w == "create pods" }); len(others) > 0 {
		t.Errorf("after the failure came %v", others)
	}
	if len(done) < 2 || len(done) > 3 {
		t.Errorf("%d creations were tried, want 2 or 3", len(done))
	}
	if at := deferredUntil(decider.Requests()[1], jobpolicyv1.Step_STEP_CREATE_PODS); at == nil {
		t.Error("the next creation may follow at once")
	}
}

func TestWritesThatCouldHitAnotherPodCarryItsUID(t *testing.T) {
	s := newServer(testJob(), testPod(2), testPod(3, failedPhase))
	decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{
		Delete: []*jobpolicyv1.DeletePod{{Uid: uidsOf(t, 2)[0], ReleaseFirst: true}}, Release: uidsOf(t, 3),
	})}}
	start(t, testConfig(s, decider))
	decider.Await(t, 2)
	if diff := cmp.Diff([]string{"patch pods", "delete pods", "patch pods"}, s.Done()); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	wantPatch := `{"metadata":{"uid":"` + string(testUID(2)) + `","resourceVersion":"102","$deleteFromPrimitiveList/finalizers":["batch.kubernetes.io/job-tracking"]}}`
	if diff := cmp.Diff(wantPatch, string(s.Writes()[0].(clienttesting.PatchAction).GetPatch())); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	options := s.Writes()[1].(clienttesting.DeleteActionImpl).DeleteOptions
	if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != testUID(2) {
		t.Errorf("deletion has preconditions %v, want the pod's UID", options.Preconditions)
	}
}

func TestACreationWithoutAnAnswerStaysInFlightUntilTheAPIServerIsAsked(t *testing.T) {
	s := newServer(testJob())
	s.Failures["create pods"] = func(n int) error {
		if n > 1 {
			return nil
		}
		lost := testPod(7) // It was created; the answer was lost.
		s.Stamp(lost)
		if err := s.Tracker().Add(lost); err != nil {
			return err
		}
		return errors.New("connection lost")
	}
	lists := s.Count("list", "pods")
	decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{
		Create: &jobpolicyv1.CreatePods{Count: 1}, Status: &jobpolicyv1.JobStatus{Active: 1},
	})}}
	start(t, testConfig(s, decider))
	second := decider.Await(t, 2)
	if lists() == 0 {
		t.Error("the pods were not listed before the next decision")
	}
	if second.GetPods().GetActive() != 1 || second.GetInFlight() != nil {
		t.Errorf("next snapshot: active %d, in flight %v; want 1, none", second.GetPods().GetActive(), second.GetInFlight())
	}
	s.WantWrites(t, "create pods")
}

func TestRowsOfActivePodsAreSentWhenAskedFor(t *testing.T) {
	s := newServer(testJob(), testPod(2), testPod(3))
	decider := &script{Answers: []reply{answering(&jobpolicyv1.DecideJobResponse{
		Disposition:  jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE,
		Requirements: []jobpolicyv1.Requirement{jobpolicyv1.Requirement_REQUIREMENT_ACTIVE_PODS},
	})}}
	start(t, testConfig(s, decider))
	decider.Await(t, 2)
	first, second := decider.Requests()[0], decider.Requests()[1]
	if first.ActivePods != nil || len(second.GetActivePods().GetPods()) != 2 {
		t.Errorf("rows: first %v, second %v; want none, then 2", first.ActivePods, second.ActivePods)
	}
	if first.GetRequestId() == second.GetRequestId() {
		t.Errorf("both questions have id %q", first.GetRequestId())
	}
}

func TestUnmanagedJobsAndTheirPodsAreNotTouched(t *testing.T) {
	otherManager, builtin := "example.com/other", batchv1.JobControllerName
	// Neither the UID nor the labels of a Job make a pod its own, nor a kind that is
	// called Job elsewhere (kubernetes#124798).
	controlledBy := func(apiVersion, kind string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = apiVersion, kind
		}
	}
	cases := map[string]struct {
		manager   *string
		replace   bool
		wantAsked bool
	}{
		"coexisting, a Job of another manager":         {manager: &otherManager},
		"coexisting, a Job without a manager":          {},
		"replacing, a Job of another manager":          {manager: &otherManager, replace: true},
		"replacing, a Job without a manager":           {replace: true, wantAsked: true},
		"replacing, a Job of the built-in controller":  {manager: &builtin, replace: true, wantAsked: true},
		"coexisting, a Job of the built-in controller": {manager: &builtin},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			job := testJob(func(j *batchv1.Job) { j.Spec.ManagedBy = tc.manager })
			s := newServer(job, testPod(2, failedPhase), testPod(3, failedPhase, controlledBy("example.com/v1", "Thing")),
				testPod(4, failedPhase, controlledBy("batch/v1", "CronJob")), testPod(5, failedPhase, controlledBy("example.com/v1", "Job")),
				testPod(6, failedPhase, controlledBy("batch/v2", "Job")))
			decider := &script{}
			cfg := testConfig(s, decider)
			cfg.ReplaceBuiltin = tc.replace
			runFor(t, cfg, time.Minute)
			if asked := len(decider.Requests()) > 0; asked != tc.wantAsked {
				t.Errorf("asked: %v, want %v", asked, tc.wantAsked)
			}
			s.WantWrites(t)
		})
	}
}

func TestPodsWhoseJobCannotCareForThemAreReleased(t *testing.T) {
	ended := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
	cases := map[string]struct {
		server  *server
		replace bool // Beside the built-in controller, the pod would be its business.
	}{
		"the Job is gone": {server: newServer(testPod(2)), replace: true},
		"a Job of the same name has another UID": {
			server:  newServer(testPod(2), testJob(func(j *batchv1.Job) { j.UID = testUID(5) })),
			replace: true,
		},
		"the Job is finished":                          {server: newServer(testPod(2, ended), testJob(finished)), replace: false},
		"the pod lost its owner and no Job selects it": {server: newServer(testPod(2, loose)), replace: true},
		"an unmanaged Job selects it":                  {server: newServer(testPod(2, loose), testJob(unmanaged)), replace: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.server.Failures["patch pods"] = fakes.FailFirst(2, errors.New("timeout"))
			cfg := testConfig(tc.server, &script{})
			cfg.ReplaceBuiltin = tc.replace
			start(t, cfg)
			eventually(t, "release in spite of failures", func() bool { return !hasFinalizer(tc.server.pod(t, "pod-2")) })
		})
	}
}

func TestPodsAreClaimed(t *testing.T) {
	s := newServer(testJob(), testPod(2, unclaimed), testPod(3, stray))
	decider := &script{}
	start(t, testConfig(s, decider))
	eventually(t, "adoption and release", func() bool {
		return metav1.GetControllerOf(s.pod(t, "pod-2")) != nil && metav1.GetControllerOf(s.pod(t, "pod-3")) == nil
	})
	adopted := s.pod(t, "pod-2")
	if !hasFinalizer(adopted) {
		t.Error("the adopted pod has no tracking finalizer")
	}
	if diff := cmp.Diff(testPod(2).OwnerReferences, adopted.OwnerReferences); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	if hasFinalizer(s.pod(t, "pod-3")) {
		t.Error("the pod that was let go keeps the tracking finalizer")
	}
	decider.Await(t, 1)
	if got := decider.Requests()[0].GetPods().GetActive(); got != 1 {
		t.Errorf("the first question has %d active pods, want the adopted one only", got)
	}
}

func TestTheEngineBeingAwayLosesNothing(t *testing.T) {
	s := newServer(testJob())
	away := failing(codes.Unavailable, "away")
	decider := &script{Answers: []reply{away, away, away, applying(&jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}})}}
	start(t, testConfig(s, decider))
	eventually(t, "creation once the engine is back", func() bool { return slices.Contains(s.Done(), "create pods") })
}

// aboutOne answers only about one Job, and never settles it.
func aboutOne(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	if req.GetJob().GetName() == "poison" {
		return nil, status.Error(codes.Internal, "broken")
	}
	return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, RequeueTime: timestamppb.Now()}, nil
}

// times is how often a script was asked about the Job of a name.
func times(s *script, name string) int {
	n := 0
	for _, req := range s.Requests() {
		if req.GetJob().GetName() == name {
			n++
		}
	}
	return n
}

// If the engine fails for one Job, its answer about another Job must not end the first
// Job's backoff: otherwise every answer would.
func TestAJobThatTheEngineNeverAnswersAboutBacksOff(t *testing.T) {
	s := newServer(testJob(), testJob(func(j *batchv1.Job) { j.Name, j.UID = "poison", testUID(9) }))
	decider := &script{Otherwise: aboutOne}
	cfg := testConfig(s, decider)
	cfg.APIBackoff, cfg.MaxAPIBackoff = time.Hour, time.Hour
	start(t, cfg)
	eventually(t, "both are asked about", func() bool { return times(decider, "poison") > 0 && times(decider, "job") > 0 })
	before := times(decider, "job")
	eventually(t, "questions about the other Job", func() bool { return times(decider, "job") > before+50 })
	if n := times(decider, "poison"); n > 2 {
		t.Errorf("asked %d times about a Job in its back-off, want the first time and one more", n)
	}
}

func TestARejectedJobIsToldOnce(t *testing.T) {
	s := newServer(testJob())
	reject := failing(codes.InvalidArgument, "spec.parallelism: too odd")
	fixed := make(chan struct{})
	decider := &script{Answers: []reply{reject, reject, reject}, Otherwise: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		<-fixed
		return settled(req, 0), nil
	}}
	e := start(t, testConfig(s, decider))
	decider.Await(t, 4)
	rejected := func() (why string) {
		e.EachJob(func(o Observation) { why = o.Rejected })
		return why
	}
	if why := rejected(); why != "UNSPECIFIED" {
		t.Errorf("it is said to be rejected because of %q, want UNSPECIFIED", why)
	}
	close(fixed)
	eventually(t, "a decision", func() bool { return rejected() == "" })
	ev := s.AwaitEvent(t, controller.EventPolicyRejected)
	if all := s.Events(t); len(all) != 1 || ev.Count > 1 || ev.Source.Component != "job-controller" || !strings.Contains(ev.Message, "too odd") {
		t.Errorf("events %v, the first one %+v", all, ev)
	}
}

func TestARecreatedJobStartsClean(t *testing.T) {
	s := newServer(testJob())
	decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}})}}
	start(t, testConfig(s, decider))
	eventually(t, "creation", func() bool { return slices.Contains(s.Done(), "create pods") })
	ctx := context.Background()
	if err := s.BatchV1().Jobs("ns").Delete(ctx, "job", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.BatchV1().Jobs("ns").Create(ctx, testJob(func(j *batchv1.Job) { j.UID = testUID(5) }), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var first *jobpolicyv1.DecideJobRequest
	eventually(t, "question about the new Job", func() bool {
		for _, r := range decider.Requests() {
			if bytes.Equal(r.GetJob().GetUid(), uidsOf(t, 5)[0]) {
				first = r
				return true
			}
		}
		return false
	})
	if first.GetPods().GetActive() != 0 || first.GetInFlight() != nil {
		t.Errorf("the new Job begins with pods %v, in flight %v", first.GetPods(), first.GetInFlight())
	}
}

func TestDecisionsAreObserved(t *testing.T) {
	s := newServer(testJob())
	because := &jobpolicyv1.Explanation{
		Summary: "because", DecidingRule: jobpolicyv1.Rule_RULE_DEADLINE_PASSED,
		Waits: []*jobpolicyv1.Wait{{Reason: jobpolicyv1.WaitReason_WAIT_REASON_DEADLINE}},
	}
	decider := &script{Answers: []reply{answering(&jobpolicyv1.DecideJobResponse{
		Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, Explanation: because,
		Verdict: &jobpolicyv1.Verdict{Rule: jobpolicyv1.Rule_RULE_DEADLINE_PASSED},
	})}}
	e := start(t, testConfig(s, decider))
	var got []Observation
	eventually(t, "a decision on the Job", func() bool {
		got = nil
		e.EachJob(func(o Observation) { got = append(got, o) })
		return len(got) == 1 && got[0].Decision != nil
	})
	if got[0].Job.Name != "job" {
		t.Errorf("Job %s/%s, want ns/job", got[0].Job.Namespace, got[0].Job.Name)
	}
	for name, encoded := range map[string][]byte{"explanation": got[0].Decision.Explanation, "verdict": got[0].Decision.Verdict} {
		var e jobpolicyv1.Explanation
		if err := proto.Unmarshal(encoded, &e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(because, &e, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
