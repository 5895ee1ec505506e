package podjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A stand has one group, whose engine answers what a test says.
type stand struct {
	*testing.T
	*Controller
	client *fake.Clientset
	group  Group
	asked  []*jobpolicyv1.DecideJobRequest
	answer *jobpolicyv1.DecideJobResponse
	steps  []string // What was done, in order.
	fails  string   // The step that fails.
}

func newStand(t *testing.T, pods ...corev1.Pod) *stand {
	s := &stand{T: t, client: fake.NewClientset(), answer: &jobpolicyv1.DecideJobResponse{}}
	for i := range pods {
		if err := s.client.Tracker().Add(&pods[i]); err != nil {
			t.Fatal(err)
		}
	}
	s.client.PrependReactor("*", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return s.did(action.GetVerb()), nil, apierrors.NewInternalError(errors.New("on purpose"))
	})
	s.Controller = &Controller{Pods: s.client.CoreV1(), Ask: s.ask, Event: func(*batchv1.Job, *jobpolicyv1.JobEvent) { s.did("event") }}
	s.group = Group{
		Owner: metav1.OwnerReference{APIVersion: "example.dev/v1", Kind: "Training", Name: "train", UID: uid(100), Controller: new(true)},
		Job: &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train-workers"},
			Spec:       batchv1.JobSpec{Completions: new(int32(3)), Parallelism: new(int32(3)), TTLSecondsAfterFinished: new(int32(1))},
		},
		Pods: pods,
		WriteStatus: func(_ context.Context, status batchv1.JobStatus) error {
			if s.did("status") {
				return errors.New("on purpose")
			}
			s.group.Job.Status = status
			return nil
		},
	}
	return s
}

// did notes a step, and reports whether it is to fail.
func (s *stand) did(step string) bool {
	s.steps = append(s.steps, step)
	return step == s.fails
}

func (s *stand) ask(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	s.asked = append(s.asked, req)
	s.answer.RequestId, s.answer.Disposition = req.GetRequestId(), jobpolicyv1.Disposition_DISPOSITION_APPLY
	return s.answer, nil
}

func (s *stand) step() (time.Time, error) {
	s.Helper()
	s.steps = nil
	return s.Step(s.Context(), s.group)
}

func (s *stand) mustStep() {
	s.Helper()
	if _, err := s.step(); err != nil {
		s.Fatal(err)
	}
}

func uid(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n)) }

func uidBytes(n int) []byte {
	b, err := wire.UIDBytes(uid(n))
	if err != nil {
		panic(err)
	}
	return b
}

func pod(n int, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("train-workers-", n), UID: uid(n), Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.dev/v1", Kind: "Training", UID: uid(100), Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// Whatever step fails, none after it is done.
func TestStepsAreDoneInTheContractsOrder(t *testing.T) {
	whole := map[string]*jobpolicyv1.DecideJobResponse{
		"create, status, event, patch": {
			Create: &jobpolicyv1.CreatePods{Count: 1}, Status: &jobpolicyv1.JobStatus{Active: 2}, Release: [][]byte{uidBytes(1)},
			Events: []*jobpolicyv1.JobEvent{{Type: jobpolicyv1.EventType_EVENT_TYPE_NORMAL, Reason: "Suspended"}},
		},
		"delete, status, event, patch": {
			Delete: []*jobpolicyv1.DeletePod{{Uid: uidBytes(0)}}, Status: &jobpolicyv1.JobStatus{Active: 2}, Release: [][]byte{uidBytes(1)},
			Events: []*jobpolicyv1.JobEvent{{Type: jobpolicyv1.EventType_EVENT_TYPE_NORMAL, Reason: "Suspended"}},
		},
		"status, event, patch, delete": {
			Status: &jobpolicyv1.JobStatus{Active: 2}, Release: [][]byte{uidBytes(1)}, DeleteFinished: [][]byte{uidBytes(2)},
			Events: []*jobpolicyv1.JobEvent{{Type: jobpolicyv1.EventType_EVENT_TYPE_NORMAL, Reason: "Suspended"}},
		},
		"patch, delete, status": {
			Delete: []*jobpolicyv1.DeletePod{{Uid: uidBytes(0), ReleaseFirst: true}}, Status: &jobpolicyv1.JobStatus{Active: 2},
		},
	}
	for order, decision := range whole {
		steps := strings.Split(order, ", ")
		for i, fails := range append(steps, "") {
			if fails == "event" {
				continue
			}
			t.Run(order+", fails: "+fails, func(t *testing.T) {
				pods := []corev1.Pod{pod(0, corev1.PodRunning), pod(1, corev1.PodSucceeded), pod(2, corev1.PodSucceeded), pod(3, corev1.PodSucceeded)}
				pods[2].Finalizers, pods[3].Finalizers = nil, nil
				s := newStand(t, pods...)
				s.group.Options = &jobpolicyv1.JobOptions{KeepFinishedPods: &jobpolicyv1.KeepFinishedPods{Succeeded: new(int32(1))}}
				s.answer, s.fails = decision, fails
				_, err := s.step()
				if (err != nil) != (fails != "") {
					t.Errorf("error %v", err)
				}
				if diff := cmp.Diff(steps[:min(i+1, len(steps))], s.steps); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// The creation is fine, but the status is not.
func TestNothingIsDoneForAnAnswerThatBreaksTheContract(t *testing.T) {
	s := newStand(t)
	s.answer = &jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}, Status: &jobpolicyv1.JobStatus{Active: -1}}
	if _, err := s.step(); err == nil || !strings.Contains(err.Error(), "status.active is -1") {
		t.Errorf("error %v, want one that names status.active", err)
	}
	if len(s.steps) > 0 {
		t.Errorf("these steps were done: %q", s.steps)
	}
}

func TestTheRequestCountsThePods(t *testing.T) {
	s := newStand(t, pod(0, corev1.PodRunning), pod(1, corev1.PodSucceeded), pod(2, corev1.PodFailed))
	s.group.Job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{uid(2), uid(3)}}
	s.group.Job.Annotations = map[string]string{wire.Policy: "{job: {ttlSecondsAfterComplete: 0}}"}
	s.mustStep()
	req := s.asked[0]
	if req.GetPods().GetActive() != 1 || len(req.GetUnaccountedPods()) != 2 || len(req.GetConfirmedReleases()) != 1 {
		t.Errorf("the request counts wrong: %v", req)
	}
	if req.GetSpec().TtlSecondsAfterFinished != nil || req.GetSpec().Options != nil {
		t.Error("the request has a time to live")
	}
	s.group.Job.Name = "train-leader"
	if _, err := s.step(); err != nil || string(s.asked[1].GetJob().GetUid()) == string(req.GetJob().GetUid()) {
		t.Errorf("%v; two groups of one owner have one UID", err)
	}
}

// The owner's options reach the engine, except times to live: the owner decides how long the group stays.
func TestAGroupHasOptions(t *testing.T) {
	s := newStand(t)
	s.group.Options = &jobpolicyv1.JobOptions{
		EndCondition: true, TtlSecondsAfterComplete: new(int32(1)), TtlSecondsAfterFailed: new(int32(2)), DefaultTtlSecondsAfterFinished: new(int32(3)),
	}
	before := proto.CloneOf(s.group.Options)
	s.mustStep()
	if diff := cmp.Diff(&jobpolicyv1.JobOptions{EndCondition: true}, s.asked[0].GetSpec().GetOptions(), protocmp.Transform()); diff != "" {
		t.Errorf("options of the request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, s.group.Options, protocmp.Transform()); diff != "" {
		t.Errorf("the caller's options were changed (-before +after):\n%s", diff)
	}
}

// With a deadline to start the engine is told that a pod has run.
func TestADeadlineToStartKnowsOfPodsThatHaveRun(t *testing.T) {
	running := pod(0, corev1.PodRunning)
	running.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	s := newStand(t, running)
	s.mustStep()
	s.group.Options = &jobpolicyv1.JobOptions{StartDeadlineSeconds: new(int64(30))}
	s.mustStep()
	if without, with := s.asked[0].GetPods().GetHasRun(), s.asked[1].GetPods().GetHasRun(); without || !with {
		t.Errorf("a pod has run: %v without a deadline to start, %v with one, want false and true", without, with)
	}
}

// A group whose options say what becomes of pods that never start says which ones do not.
func TestAGroupTellsOfPodsThatDoNotStart(t *testing.T) {
	stuck := pod(0, corev1.PodPending)
	stuck.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
	s := newStand(t, stuck)
	s.mustStep()
	s.group.Options = &jobpolicyv1.JobOptions{NeverStarted: []*jobpolicyv1.NeverStarted{{
		Problem: jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE, AfterSeconds: new(int32(9)),
	}}}
	s.mustStep()
	without, with := s.asked[0].GetUnstartedPods(), s.asked[1].GetUnstartedPods()
	if without != nil || len(with) != 1 || with[0].GetStart().GetReason() != "ErrImagePull" {
		t.Errorf("pods that do not start: %v without the option, %v with it", without, with)
	}
}

// A creation without an answer may have made its pod: it must not be made twice.
func TestAPodThatIsMadeAgainHasTheSameName(t *testing.T) {
	s := newStand(t, pod(0, corev1.PodFailed), pod(2, corev1.PodRunning))
	s.answer = &jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 2}}
	s.mustStep()
	pods, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
		if pod.OwnerReferences[0].UID != uid(100) {
			t.Errorf("pod %s has the owner %v", pod.Name, pod.OwnerReferences)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"train-workers-0", "train-workers-2", "train-workers-3", "train-workers-4"}, names); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if _, err := s.step(); !apierrors.IsAlreadyExists(errors.Unwrap(err)) {
		t.Errorf("the same view once more: error %v, want that the pod exists", err)
	}
}

// A creation without an answer makes its pod late. No finished pod is deleted before the creation is tried again, and the name of
// one that is gone all the same is not free: the late pod's name is tried, and there is no second pod.
func TestANameThatPruningFreesIsNotTakenForALatePod(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		waits bool
	}{
		"no answer":  {context.DeadlineExceeded, true},
		"it refuses": {apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("exceeded quota: count/pods")), false},
	} {
		t.Run(name, func(t *testing.T) {
			counted, running, late := pod(0, corev1.PodSucceeded), pod(1, corev1.PodRunning), pod(2, corev1.PodPending)
			counted.Finalizers, late.Annotations = nil, map[string]string{GroupAnnotation: "train-workers"}
			s := newStand(t, counted, running)
			s.group.Options = &jobpolicyv1.JobOptions{KeepFinishedPods: &jobpolicyv1.KeepFinishedPods{Succeeded: new(int32(1))}}
			s.client.PrependReactor("create", "pods", func(k8stesting.Action) (bool, runtime.Object, error) { return len(s.asked) == 1, nil, tc.err })
			s.answer.Create = &jobpolicyv1.CreatePods{Count: 1}
			if _, err := s.step(); err == nil {
				t.Fatal("the creation did not fail")
			}
			s.answer.Create = nil
			s.mustStep()
			waits := slices.ContainsFunc(s.asked[1].GetDeferrals(), func(d *jobpolicyv1.Deferral) bool { return d.GetStep() == deleteFinished })
			if waits != tc.waits {
				t.Errorf("the deletion of finished pods waits: %v, want %v", waits, tc.waits)
			}
			s.after.Clear()
			s.group.Pods, s.answer.Create = []corev1.Pod{running}, &jobpolicyv1.CreatePods{Count: 1}
			if err := errors.Join(s.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "default", counted.Name), s.client.Tracker().Add(&late)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.step(); !apierrors.IsAlreadyExists(err) {
				t.Errorf("error %v, want that the late pod exists", err)
			}
		})
	}
}

// Options may shorten the delay after a quota refused a pod, and no other delay.
func TestTheDelayAfterAQuotaRefusedAPod(t *testing.T) {
	full, limits := errors.New("exceeded quota: q"), &jobpolicyv1.JobOptions{RetryDelay: &jobpolicyv1.RetryDelay{QuotaMaxSeconds: new(int32(3))}}
	for name, tc := range map[string]struct {
		options *jobpolicyv1.JobOptions
		err     error
		want    time.Duration
	}{
		"no options":        {nil, full, backoff},
		"three seconds":     {limits, full, 3 * time.Second},
		"a webhook refuses": {limits, errors.New("admission webhook denied it"), backoff},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			s.group.Options = tc.options
			s.client.PrependReactor("create", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", tc.err)
			})
			s.answer.Create = &jobpolicyv1.CreatePods{Count: 1}
			if _, err := s.step(); err == nil {
				t.Fatal("the creation did not fail")
			}
			s.answer.Create = nil
			s.mustStep()
			list := s.asked[1].GetDeferrals()
			if len(list) != 1 || list[0].GetStep() != createPods {
				t.Fatalf("deferrals %v, want that of the creation", list)
			}
			if wait := list[0].GetUntil().AsTime().Sub(s.asked[0].GetNow().AsTime()); wait.Round(time.Second) != tc.want {
				t.Errorf("the creation waits for %v, want %v", wait, tc.want)
			}
		})
	}
}

// Admission changes each new pod so that it does not count for the group. The creation fails, the pod
// is removed, and no other one is created at once.
func TestAPodThatAdmissionChangesIsRemoved(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"no owner":             func(p *corev1.Pod) { p.OwnerReferences = nil },
		"another owner":        func(p *corev1.Pod) { p.OwnerReferences[0].UID = uid(99) },
		"no finalizer":         func(p *corev1.Pod) { p.Finalizers = nil },
		"another group's name": func(p *corev1.Pod) { p.Annotations[api.GroupAnnotation] = "other" },
	} {
		s := newStand(t)
		s.answer.Create = &jobpolicyv1.CreatePods{Count: 3}
		s.client.PrependReactor("create", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
			change(action.(k8stesting.CreateAction).GetObject().(*corev1.Pod))
			return false, nil, nil
		})
		if _, err := s.step(); err == nil || !strings.Contains(err.Error(), "admission changed the new pod") {
			t.Errorf("%s: error %v, want one that says that admission changed the pod", name, err)
		}
		want := []string{"create", "patch", "delete"}
		if name == "no finalizer" {
			want = []string{"create", "delete"}
		}
		if diff := cmp.Diff(want, s.steps); diff != "" {
			t.Errorf("%s: steps (-want +got):\n%s", name, diff)
		}
	}
}

// Another controller's pod may have a name that the group would choose, and somebody may create a
// pod that looks like one of the group's without being controlled by the owner.
func TestANameThatIsTakenIsPassedOver(t *testing.T) {
	cases := map[string]func(*metav1.OwnerReference){
		"a pod of another owner":                    func(ref *metav1.OwnerReference) { ref.UID = uid(101) },
		"a pod that the owner does not control":     func(ref *metav1.OwnerReference) { ref.Controller = nil },
		"a pod of another kind with the owner's ID": func(ref *metav1.OwnerReference) { ref.Kind = "ConfigMap" },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			s, foreign := newStand(t), pod(0, corev1.PodRunning)
			foreign.Annotations = map[string]string{api.GroupAnnotation: s.group.Job.Name}
			change(&foreign.OwnerReferences[0])
			if err := s.client.Tracker().Add(&foreign); err != nil {
				t.Fatal(err)
			}
			s.answer = &jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 2}}
			s.mustStep()
			for n := 1; n <= 2; n++ {
				if _, err := s.client.CoreV1().Pods("default").Get(t.Context(), fmt.Sprint("train-workers-", n), metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A pod may have got another owner since it was read. It is neither released nor deleted then.
func TestAPodOfAnotherOwnerIsNotReleased(t *testing.T) {
	was := pod(0, corev1.PodRunning)
	now := was.DeepCopy()
	now.OwnerReferences[0].UID = uid(101)
	s := newStand(t, *now)
	s.group.Pods = []corev1.Pod{was}
	s.client.PrependReactor("patch", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, now.Name, errors.New("it has changed"))
	})
	s.answer = &jobpolicyv1.DecideJobResponse{Delete: []*jobpolicyv1.DeletePod{{Uid: uidBytes(0), ReleaseFirst: true}}}
	s.mustStep()
	if left, err := s.client.CoreV1().Pods("default").Get(t.Context(), now.Name, metav1.GetOptions{}); err != nil || len(left.Finalizers) != 1 {
		t.Errorf("%v; the other owner's pod has the finalizers %v, want it as it was", err, left.Finalizers)
	}
}

// An admission webhook may put the finalizer back that a release removes. That is an error, so that
// nobody tries again without a pause (invariant I11); and the other pods are released.
func TestAFinalizerThatIsPutBackIsAnError(t *testing.T) {
	stuck := pod(0, corev1.PodSucceeded)
	s := newStand(t, stuck, pod(1, corev1.PodSucceeded))
	s.client.PrependReactor("patch", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return action.(k8stesting.PatchAction).GetName() == stuck.Name, stuck.DeepCopy(), nil
	})
	s.answer = &jobpolicyv1.DecideJobResponse{Release: [][]byte{uidBytes(0), uidBytes(1)}, FollowUp: jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE}
	if next, err := s.step(); !errors.Is(err, api.ErrPutBack) || !next.IsZero() {
		t.Errorf("next step at %v, error %v, want no time and that the finalizer was put back", next, err)
	}
	other, err := s.client.CoreV1().Pods("default").Get(t.Context(), "train-workers-1", metav1.GetOptions{})
	if err != nil || len(other.Finalizers) > 0 {
		t.Errorf("%v; the other pod has the finalizers %v, want none", err, other.Finalizers)
	}
	s.answer = &jobpolicyv1.DecideJobResponse{Delete: []*jobpolicyv1.DeletePod{{Uid: uidBytes(0), ReleaseFirst: true}}}
	stuck.Status.Phase, s.group.Pods[0].Status.Phase = corev1.PodRunning, corev1.PodRunning
	if _, err := s.step(); !errors.Is(err, api.ErrPutBack) {
		t.Errorf("a running pod to release and delete: error %v, want that the finalizer was put back", err)
	}
}

// Two groups of one owner may choose the same name for a pod.
func TestANameThatAnotherGroupOfTheOwnerTookIsPassedOver(t *testing.T) {
	s := newStand(t)
	indexed := batchv1.IndexedCompletion
	s.group.Job.Name, s.group.Job.Spec.CompletionMode = "train-w", &indexed
	s.answer = &jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1, Indexes: answer.Indexes(0)}}
	s.mustStep()
	s.group.Job.Name, s.group.Job.Spec.CompletionMode = "train-w-0", nil
	s.answer = &jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}}
	s.mustStep()
	for name, group := range map[string]string{"train-w-0-0": "train-w", "train-w-0-1": "train-w-0"} {
		if pod, err := s.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil || pod.Annotations["jobpolicy.dev/group"] != group {
			t.Errorf("pod %s: %v, annotations %v, want that of group %s", name, err, pod.Annotations, group)
		}
	}
}

// What is remembered of groups after failed creations is forgotten when it is over.
func TestGroupsThatGoAwayAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Controller
		for n := range 100 {
			c.deferStep(uid(n), createPods, backoff)
			time.Sleep(backoff)
		}
		known := 0
		c.after.Range(func(any, any) bool { known++; return true })
		if known > 1 {
			t.Errorf("%d groups are known, and the time of all but one is over", known)
		}
	})
}

// A pod that is to be deleted uncounted is released only as it was seen: if it has ended since,
// it is to be counted.
func TestAPodThatHasEndedSinceIsNotReleasedUncounted(t *testing.T) {
	cases := map[string]struct {
		now     corev1.PodPhase
		wantErr error
	}{
		"it has changed, and runs": {now: corev1.PodRunning},
		"it has ended":             {now: corev1.PodSucceeded, wantErr: api.ErrPodEnded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen, live := pod(0, corev1.PodRunning), pod(0, tc.now)
			seen.ResourceVersion, live.ResourceVersion = "1", "2"
			s := newStand(t, live)
			s.group.Pods = []corev1.Pod{seen}
			s.client.PrependReactor("patch", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
				if patch := string(action.(k8stesting.PatchAction).GetPatch()); strings.Contains(patch, `"resourceVersion":"1"`) {
					return true, nil, apierrors.NewConflict(corev1.Resource("pods"), seen.Name, errors.New("newer"))
				}
				return false, nil, nil
			})
			s.answer = &jobpolicyv1.DecideJobResponse{Delete: []*jobpolicyv1.DeletePod{{Uid: uidBytes(0), ReleaseFirst: true}}}
			if _, err := s.step(); !errors.Is(err, tc.wantErr) {
				t.Errorf("error %v, want %v", err, tc.wantErr)
			}
			left, err := s.client.CoreV1().Pods("default").Get(t.Context(), seen.Name, metav1.GetOptions{})
			if kept := err == nil && len(left.Finalizers) == 1; kept != (tc.wantErr != nil) {
				t.Errorf("the pod is kept, with its finalizer: %t; %v", kept, err)
			}
		})
	}
}

// Without the finalizer nothing keeps another controller from adopting the pod.
func TestAPodWithoutFinalizerIsDeletedOnlyAsItWasSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers   []string
		releaseFirst bool
		want         string // the version that the deletion requires
	}{
		"released first":  {[]string{batchv1.JobTrackingFinalizer}, true, "2"},
		"released before": {nil, false, "1"},
		"to be counted":   {[]string{batchv1.JobTrackingFinalizer}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := pod(0, corev1.PodRunning)
			seen.ResourceVersion, seen.Finalizers = "1", tc.finalizers
			s := newStand(t, seen)
			s.client.PrependReactor("patch", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
				released := seen.DeepCopy()
				released.ResourceVersion, released.Finalizers = "2", nil
				return true, released, nil
			})
			var required []string
			s.client.PrependReactor("delete", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
				version := a.(k8stesting.DeleteActionImpl).GetDeleteOptions().Preconditions.ResourceVersion
				required = append(required, ptr.Deref(version, ""))
				return true, nil, nil
			})
			s.answer = &jobpolicyv1.DecideJobResponse{Delete: []*jobpolicyv1.DeletePod{{Uid: uidBytes(0), ReleaseFirst: tc.releaseFirst}}}
			s.mustStep()
			if diff := cmp.Diff([]string{tc.want}, required); diff != "" {
				t.Errorf("versions required (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAfterAFailedCreationTheOtherStepsGoOn(t *testing.T) {
	s := newStand(t, pod(1, corev1.PodSucceeded))
	s.answer, s.fails = &jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}}, "create"
	if _, err := s.step(); err == nil {
		t.Fatal("the creation did not fail")
	}
	if _, err := s.step(); err == nil || !strings.Contains(err.Error(), "defers STEP_CREATE_PODS") {
		t.Errorf("error %v, want that a deferred step is not done", err)
	}
	d := s.asked[1].GetDeferrals()
	if len(d) != 1 || d[0].GetStep() != jobpolicyv1.Step_STEP_CREATE_PODS {
		t.Fatalf("deferrals %v, want that of creations", d)
	}
	if wait := d[0].GetUntil().AsTime().Sub(s.asked[0].GetNow().AsTime()); wait < 9*time.Second {
		t.Errorf("creations wait for %v, want about 10 s", wait)
	}
}

// A pod that cannot be deleted or told to end holds up neither the other pods nor the other steps: the step waits, and the engine
// knows it.
func TestAPodThatCannotBeRemovedHoldsUpNothingElse(t *testing.T) {
	for name, tc := range map[string]struct {
		phase  corev1.PodPhase
		verb   string
		answer *jobpolicyv1.DecideJobResponse
		writes int
		step   jobpolicyv1.Step
	}{
		"delete": {
			corev1.PodRunning, "delete", &jobpolicyv1.DecideJobResponse{
				Delete: []*jobpolicyv1.DeletePod{{Uid: uidBytes(0)}, {Uid: uidBytes(1)}}, End: []*jobpolicyv1.EndPod{{Uid: uidBytes(2), ActiveDeadlineSeconds: 1}},
			}, 3, deletePods,
		},
		"end": {
			corev1.PodRunning, "patch", &jobpolicyv1.DecideJobResponse{
				End: []*jobpolicyv1.EndPod{{Uid: uidBytes(0), ActiveDeadlineSeconds: 1}, {Uid: uidBytes(1), ActiveDeadlineSeconds: 1}},
			}, 2, deletePods,
		},
		"delete finished": {
			corev1.PodSucceeded, "delete", &jobpolicyv1.DecideJobResponse{DeleteFinished: [][]byte{uidBytes(0), uidBytes(1)}}, 2, deleteFinished,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []corev1.Pod
			for n := range 3 {
				pods = append(pods, pod(n, tc.phase))
				if tc.phase == corev1.PodSucceeded {
					pods[n].Finalizers = nil
				}
			}
			s := newStand(t, pods...)
			s.group.Options = &jobpolicyv1.JobOptions{KeepFinishedPods: &jobpolicyv1.KeepFinishedPods{Succeeded: new(int32(1))}}
			s.client.PrependReactor(tc.verb, "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
				named := action.(interface{ GetName() string })
				return named.GetName() == pods[0].Name && s.did("refused"), nil, apierrors.NewForbidden(corev1.Resource("pods"), pods[0].Name, errors.New("on purpose"))
			})
			s.answer, s.fails = tc.answer, "refused"
			if _, err := s.step(); !apierrors.IsForbidden(err) || len(s.steps) != tc.writes {
				t.Errorf("error %v after %q, want the refusal, and %d writes", err, s.steps, tc.writes)
			}
			s.answer = &jobpolicyv1.DecideJobResponse{Status: &jobpolicyv1.JobStatus{Active: 2}}
			s.mustStep()
			d := s.asked[1].GetDeferrals()
			if len(s.asked[0].GetDeferrals()) > 0 || len(d) != 1 || d[0].GetStep() != tc.step {
				t.Fatalf("deferrals %v, want none at first, and then %v", d, tc.step)
			}
			if wait := d[0].GetUntil().AsTime().Sub(s.asked[0].GetNow().AsTime()); wait < 9*time.Second {
				t.Errorf("the step waits for %v, want about 10 s", wait)
			}
		})
	}
}

// A clock that is set back by an hour after a failed creation does not delay the next one by an
// hour.
func TestAClockThatIsSetBackDelaysNoCreation(t *testing.T) {
	s := newStand(t)
	var ahead time.Duration
	s.Controller.Now = func() time.Time { return time.Now().Add(ahead) }
	ahead = time.Hour
	s.answer, s.fails = &jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}}, "create"
	if _, err := s.step(); err == nil {
		t.Fatal("the creation did not fail")
	}
	ahead = 0
	_, _ = s.step() // The answer takes a deferred step, and is refused.
	second := s.asked[1]
	if wait := second.GetDeferrals()[0].GetUntil().AsTime().Sub(second.GetNow().AsTime()); wait > backoff {
		t.Errorf("creation waits for %v, want %v at most", wait, backoff)
	}
}

// A decision that changes nothing is not asked for again at once.
func TestNoHotLoop(t *testing.T) {
	s := newStand(t)
	s.answer = &jobpolicyv1.DecideJobResponse{Status: &jobpolicyv1.JobStatus{Active: 1}, FollowUp: jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE}
	if next, err := s.step(); err != nil || next.IsZero() {
		t.Errorf("the status is new: %v, %v, want to be asked at once", next, err)
	}
	if next, err := s.step(); err != nil || !next.IsZero() || len(s.steps) != 0 {
		t.Errorf("the status is written: %v, %v, did %v", next, err, s.steps)
	}
	s.answer.RequeueTime = timestamppb.New(time.Unix(2_000_000_000, 0))
	if next, err := s.step(); err != nil || next.Unix() != 2_000_000_000 {
		t.Errorf("%v, %v, want the requeue time", next, err)
	}
}

func TestSettingsThatStepCannotCarryOutAreRefused(t *testing.T) {
	for field, settings := range map[string]*jobpolicyv1.Settings{"PodGroups": {PodGroups: jobpolicyv1.PodGroups_POD_GROUPS_ALL}} {
		s := newStand(t)
		s.Settings = settings
		if _, err := s.step(); err == nil || !strings.HasPrefix(err.Error(), "Settings."+field+" is set, want it unset: ") || len(s.asked) > 0 {
			t.Errorf("%s: error %v after %d requests, want an error that names it, before any request", field, err, len(s.asked))
		}
	}
}

func TestAPodThatNobodyToldTheEngineOf(t *testing.T) {
	s := newStand(t, pod(1, corev1.PodSucceeded))
	s.answer = &jobpolicyv1.DecideJobResponse{Release: [][]byte{uidBytes(7)}}
	if _, err := s.step(); err == nil || !strings.Contains(err.Error(), "the request did not") {
		t.Errorf("error %v, want that the request did not name the pod", err)
	}
}

func TestRemove(t *testing.T) {
	pods := []corev1.Pod{pod(1, corev1.PodSucceeded), pod(2, corev1.PodRunning)}
	s := newStand(t, pods...)
	s.client.ClearActions()
	if err := s.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "default", pods[0].Name); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	left, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("%v are left, %v", left.Items, err)
	}
}

// A pod whose owner is gone may have been adopted since it was read, before it is released or after. It
// is left alone then, and the other pods are removed.
func TestAPodThatWasAdoptedSinceIsNotRemoved(t *testing.T) {
	for verb, wantReleased := range map[string]bool{"patch": false, "delete": true} {
		t.Run("it is adopted before the "+verb, func(t *testing.T) {
			seen, other := pod(1, corev1.PodRunning), pod(2, corev1.PodRunning)
			seen.ResourceVersion, other.ResourceVersion = "1", "1"
			live := seen.DeepCopy()
			s := newStand(t, seen, other)
			adopt := func() error {
				live.ResourceVersion, live.OwnerReferences[0].UID = "3", uid(101)
				return apierrors.NewConflict(corev1.Resource("pods"), live.Name, errors.New("newer"))
			}
			released := false
			s.client.PrependReactor("*", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
				named, ok := action.(interface{ GetName() string })
				switch {
				case !ok || named.GetName() != live.Name:
					return false, nil, nil
				case action.GetVerb() == verb && requires(action, live.ResourceVersion):
					return true, nil, adopt()
				case action.GetVerb() == "patch":
					released, live.ResourceVersion, live.Finalizers = true, "2", nil
				}
				return action.GetVerb() != "delete", live.DeepCopy(), nil
			})
			if err := s.Remove(t.Context(), []corev1.Pod{seen, other}); err != nil {
				t.Errorf("error %v, want none", err)
			}
			left, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(left.Items) != 1 || left.Items[0].Name != live.Name || released != wantReleased {
				t.Errorf("%v are left, %v, the adopted one was released: %t; want only the adopted one, released: %t", left.Items, err, released, wantReleased)
			}
		})
	}
}

// requires reports whether a write requires a version of its object.
func requires(write k8stesting.Action, version string) bool {
	if patch, ok := write.(k8stesting.PatchAction); ok {
		return strings.Contains(string(patch.GetPatch()), fmt.Sprintf(`"resourceVersion":%q`, version))
	}
	return ptr.Deref(write.(k8stesting.DeleteActionImpl).GetDeleteOptions().Preconditions.ResourceVersion, "") == version
}

// An owner reference means an object in the same namespace, whatever UID it has, and of the same kind,
// whatever version it has.
func TestByOwner(t *testing.T) {
	otherKind, otherNamespace, otherVersion := pod(2, corev1.PodRunning), pod(3, corev1.PodRunning), pod(4, corev1.PodRunning)
	otherVersion.OwnerReferences[0].APIVersion = "example.dev/v1alpha1"
	otherKind.OwnerReferences[0].APIVersion, otherNamespace.Namespace = "example.org/v1", "elsewhere"
	owned := ByOwner([]corev1.Pod{pod(1, corev1.PodRunning), otherKind, otherNamespace, otherVersion, {}}, schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Training"})
	owner := &metav1.ObjectMeta{Namespace: "default", UID: uid(100)}
	if pods := owned.Take(owner); len(pods) != 2 || pods[0].Namespace != "default" || pods[1].Name != otherVersion.Name {
		t.Errorf("the owner has %v, want two pods of its namespace", pods)
	}
	if again := owned.Take(owner); len(again) != 0 || len(owned) != 1 {
		t.Errorf("then it has %v, and there are %v; want the pod of the other namespace alone", again, owned)
	}
}

// Run reconciles at the start, when the last call said so, after an error, and at a
// change.
func TestRun(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{pods: "PodList"})
	ctx, cancel := context.WithCancel(t.Context())
	calls := make(chan int)
	ended := make(chan error, 1)
	go func() {
		n := 0
		ended <- Run(ctx, client, func(context.Context) (time.Time, error) {
			n++
			calls <- n
			switch n {
			case 1:
				return time.Now(), nil
			case 2:
				return time.Time{}, errors.New("on purpose")
			}
			return time.Time{}, nil
		})
	}()
	for want := 1; want <= 3; want++ {
		if n := <-calls; n != want {
			t.Fatalf("call %d, want %d", n, want)
		}
	}
	object := pod(1, corev1.PodRunning)
	object.APIVersion, object.Kind = "v1", "Pod"
	create(t, client, &object)
	if n := <-calls; n != 4 {
		t.Fatalf("call %d, want 4", n)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func create(t *testing.T, client dynamic.Interface, pod *corev1.Pod) {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err == nil {
		_, err = client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(pod.Namespace).
			Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
