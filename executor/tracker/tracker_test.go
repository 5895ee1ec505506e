package tracker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func uidOf(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012x", n)) }

func uidBytes(n int) []byte {
	b, err := wire.UIDBytes(uidOf(n))
	if err != nil {
		panic(err)
	}
	return b
}

type option func(*corev1.Pod)

func podOf(n, rv int, options ...option) *podcache.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p" + strconv.Itoa(n), UID: uidOf(n), ResourceVersion: strconv.Itoa(rv),
			CreationTimestamp: metav1.NewTime(epoch), Annotations: map[string]string{},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	ownedBy("job")(pod)
	for _, o := range options {
		o(pod)
	}
	return podcache.From(pod)
}

func tracked(pod *corev1.Pod) { pod.Finalizers = []string{batchv1.JobTrackingFinalizer} }

func inPhase(p corev1.PodPhase) option { return func(pod *corev1.Pod) { pod.Status.Phase = p } }

func withIndex(ix string) option {
	return func(pod *corev1.Pod) { pod.Annotations[batchv1.JobCompletionIndexAnnotation] = ix }
}

func isReady(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch)}}
}

func deletedAt(at time.Time, grace int64) option {
	return func(pod *corev1.Pod) {
		stamp := metav1.NewTime(at.Add(time.Duration(grace) * time.Second))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &stamp, &grace
	}
}

func restarted(n int32) option {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "c", RestartCount: n})
	}
}

func createdAt(at time.Time) option {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(at) }
}

func endedAt(at time.Time, code int32) option {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:  "c",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(at)}},
		})
	}
}

func mustView(t rapid.TB, tr *Job, q ViewOptions) View {
	t.Helper()
	if q.MaxRows == 0 {
		q.MaxRows = 1000
	}
	return tr.View(q)
}

// A countCase is pods, and how they count.
type countCase struct {
	policy       Policy
	pods         []*podcache.Pod
	want         *jobpolicyv1.PodSummary
	wantUnlisted *jobpolicyv1.UnlistedPods
	wantRows     int
	maxRows      int
	recorded     []types.UID
}

func countEach(t *testing.T, cases map[string]countCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			for _, pod := range tc.pods {
				tr.ObservePod(pod, Watch)
			}
			tr.SetPolicy(tc.policy) // Pods may come before their Job.
			v := mustView(t, tr, ViewOptions{MaxRows: tc.maxRows, Uncounted: &batchv1.UncountedTerminatedPods{Failed: tc.recorded}})
			if diff := cmp.Diff(tc.want, v.Pods, protocmp.Transform()); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantUnlisted, v.Unlisted, protocmp.Transform()); diff != "" {
				t.Errorf("unlisted (-want +got):\n%s", diff)
			}
			if len(v.Unaccounted) != tc.wantRows {
				t.Errorf("got %d rows, want %d", len(v.Unaccounted), tc.wantRows)
			}
		})
	}
}

func oneIndex(ix int32) *jobpolicyv1.IndexSet {
	return &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: ix, Last: ix}}}
}

func TestWhetherAPodOfTheJobHasRun(t *testing.T) {
	running := inPhase(corev1.PodRunning)
	cases := map[string]struct {
		pods []*podcache.Pod
		want bool
	}{
		"an active pod":                     {[]*podcache.Pod{podOf(1, 1), podOf(2, 1, running)}, true},
		"none":                              {[]*podcache.Pod{podOf(1, 1), podOf(2, 1, tracked, inPhase(corev1.PodFailed))}, false},
		"one that ended, until its release": {[]*podcache.Pod{podOf(1, 1, tracked, inPhase(corev1.PodSucceeded))}, true},
		"one that was released may have run before the Job was suspended": {
			[]*podcache.Pod{podOf(1, 1, inPhase(corev1.PodSucceeded)), podOf(2, 1, running, deletedAt(epoch, 30))}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			for _, pod := range tc.pods {
				tr.ObservePod(pod, Watch)
			}
			if got := mustView(t, tr, ViewOptions{}).HasRun; got != tc.want {
				t.Errorf("has run: %v, want %v", got, tc.want)
			}
		})
	}
}

// What keeps a pod from starting is a reason to act, and part of a View, only if the Job's options ask for it.
func TestPodsThatDoNotStart(t *testing.T) {
	cannotPull := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
	}
	never := []*jobpolicyv1.NeverStarted{{Problem: jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE, AfterSeconds: new(int32(9))}}
	tr := New(Key{}, nil)
	tr.ObservePod(podOf(1, 1, tracked), Watch)
	if change := tr.ObservePod(podOf(1, 2, tracked, cannotPull), Watch); change != Detail {
		t.Errorf("nobody asks: change %v, want %v", change, Detail)
	}
	if rows := mustView(t, tr, ViewOptions{}).Unstarted; rows != nil {
		t.Errorf("nobody asks: %v", rows)
	}
	rows := mustView(t, tr, ViewOptions{Options: &jobpolicyv1.JobOptions{NeverStarted: never}}).Unstarted
	want := &jobpolicyv1.PodStart{Problem: never[0].Problem, Reason: "ErrImagePull", Since: timestamppb.New(epoch)}
	if len(rows) != 1 || rows[0].GetPodName() != "p1" || !proto.Equal(rows[0].GetStart(), want) {
		t.Fatalf("asked for: %v, want pod p1 with %v", rows, want)
	}
	tr.SetPolicy(Policy{}) // As a new version of the Job does.
	tr.ObservePod(podOf(2, 3, tracked), Watch)
	if change := tr.ObservePod(podOf(2, 4, tracked, cannotPull), Watch); change != Relevant {
		t.Errorf("asked for: change %v, want %v", change, Relevant)
	}
	tr.ObservePod(podOf(1, 5, tracked, inPhase(corev1.PodRunning)), Watch)
	if rows := mustView(t, tr, ViewOptions{Options: &jobpolicyv1.JobOptions{NeverStarted: never}}).Unstarted; len(rows) != 1 || rows[0].GetPodName() != "p2" {
		t.Errorf("after the start of p1: %v", rows)
	}
	if rows := mustView(t, tr, ViewOptions{}).Unstarted; rows != nil {
		t.Errorf("nobody asks any more: %v", rows)
	}
}

func TestPodsCountByTheirState(t *testing.T) {
	countEach(t, map[string]countCase{
		"a pending pod with the finalizer is active and tracked": {
			pods: []*podcache.Pod{podOf(1, 1, tracked)},
			want: &jobpolicyv1.PodSummary{Active: 1, TrackedActive: 1},
		},
		"a running ready pod without the finalizer is active and ready": {
			pods: []*podcache.Pod{podOf(1, 1, inPhase(corev1.PodRunning), isReady)},
			want: &jobpolicyv1.PodSummary{Active: 1, Ready: 1},
		},
		"a running pod that is being deleted is terminating, not ready, and to be accounted for": {
			pods:     []*podcache.Pod{podOf(1, 1, tracked, inPhase(corev1.PodRunning), isReady, deletedAt(epoch, 30))},
			want:     &jobpolicyv1.PodSummary{Terminating: 1},
			wantRows: 1,
		},
		"a finished pod is a row only while it holds the finalizer": {
			pods:     []*podcache.Pod{podOf(1, 1, tracked, inPhase(corev1.PodSucceeded)), podOf(2, 1, inPhase(corev1.PodFailed))},
			want:     &jobpolicyv1.PodSummary{},
			wantRows: 1,
		},
		"restarts of pending and running pods add up, those of ended ones do not": {
			pods: []*podcache.Pod{
				podOf(1, 1, inPhase(corev1.PodRunning), restarted(2), restarted(1)),
				podOf(2, 1, inPhase(corev1.PodFailed), restarted(7)),
			},
			want: &jobpolicyv1.PodSummary{Active: 1, Restarts: 3},
		},
		"indexes are joined to ranges, and a duplicate or a stray index shows only in active": {
			policy: Policy{Policy: podfacts.Policy{Indexed: true}},
			pods: []*podcache.Pod{
				podOf(1, 1, withIndex("0")), podOf(2, 1, withIndex("1")), podOf(3, 1, withIndex("1")),
				podOf(4, 1, withIndex("minus")), podOf(5, 1, withIndex("70000")), podOf(6, 1, withIndex("4"), deletedAt(epoch, 0)),
			},
			want: &jobpolicyv1.PodSummary{
				Active: 5, Terminating: 1,
				ActiveIndexes:      &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: 0, Last: 1}, {First: 70000, Last: 70000}}},
				TerminatingIndexes: oneIndex(4),
			},
		},
		"a pod that the selector does not match counts nowhere": {
			policy: Policy{Matches: func(pod *podcache.Pod) bool { return pod.Name != "p1" }},
			pods:   []*podcache.Pod{podOf(1, 1, tracked, inPhase(corev1.PodFailed)), podOf(2, 1)},
			want:   &jobpolicyv1.PodSummary{Active: 1},
		},
	})
}

func TestRowsBeyondTheLimitAreCounted(t *testing.T) {
	countEach(t, map[string]countCase{
		"rows beyond the limit are counted instead": {
			policy:  Policy{Policy: podfacts.Policy{Indexed: true}},
			maxRows: 1,
			pods: []*podcache.Pod{
				podOf(1, 1, tracked, inPhase(corev1.PodSucceeded), withIndex("5")), podOf(2, 1, tracked, inPhase(corev1.PodFailed), withIndex("0")),
				podOf(3, 1, tracked, deletedAt(epoch, 0), withIndex("6")),
			},
			recorded: []types.UID{uidOf(2)},
			want:     &jobpolicyv1.PodSummary{Terminating: 1, TerminatingIndexes: oneIndex(6)},
			wantRows: 1,
			wantUnlisted: &jobpolicyv1.UnlistedPods{
				Succeeded: 1, Failed: 1,
				SucceededIndexes: oneIndex(5),
			},
		},
		"of the pods of an index that is limited, all are listed or none": {
			policy:  Policy{Policy: podfacts.Policy{Indexed: true, LimitedPerIndex: true}},
			maxRows: 1,
			pods: []*podcache.Pod{
				podOf(1, 1, tracked, inPhase(corev1.PodSucceeded), withIndex("5")), podOf(2, 1, tracked, inPhase(corev1.PodFailed), withIndex("0")),
				podOf(3, 1, tracked, deletedAt(epoch, 0), withIndex("6")), podOf(5, 1, tracked, inPhase(corev1.PodFailed), withIndex("0")),
			},
			recorded:     []types.UID{uidOf(2)},
			want:         &jobpolicyv1.PodSummary{Terminating: 1, TerminatingIndexes: oneIndex(6)},
			wantRows:     2,
			wantUnlisted: &jobpolicyv1.UnlistedPods{Succeeded: 1, Failed: 1, SucceededIndexes: oneIndex(5), FailedIndexes: oneIndex(6)},
		},
		"of those, what is still to end is told where only failed pods are replaced": {
			policy:  Policy{Policy: podfacts.Policy{Indexed: true, ReplaceFailedOnly: true}},
			maxRows: 2,
			pods: []*podcache.Pod{
				podOf(1, 1, tracked, inPhase(corev1.PodSucceeded), withIndex("5")), podOf(2, 1, tracked, inPhase(corev1.PodFailed), withIndex("0")),
				podOf(3, 1, tracked, deletedAt(epoch, 0), withIndex("6")),
				podOf(4, 1, tracked, inPhase(corev1.PodFailed), deletedAt(epoch, 0), withIndex("7")),
			},
			recorded:     []types.UID{uidOf(2)},
			want:         &jobpolicyv1.PodSummary{Terminating: 1, TerminatingIndexes: oneIndex(6)},
			wantRows:     2,
			wantUnlisted: &jobpolicyv1.UnlistedPods{Failed: 2, Terminating: 1},
		},
	})
}

func TestFinishedTime(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecarEnds := func(at time.Time) option {
		return func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: &always}}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name: "side", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)}},
			}}
		}
	}
	notReadySince := func(at time.Time) option {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(at)}}
		}
	}
	cases := map[string]struct {
		pod  *podcache.Pod
		want time.Time
	}{
		"the latest end of its containers":                  {pod: podOf(1, 1, endedAt(at(5), 0), endedAt(at(9), 1), notReadySince(at(3))), want: at(9)},
		"a sidecar that ends last":                          {pod: podOf(1, 1, endedAt(at(5), 0), sidecarEnds(at(11))), want: at(11)},
		"a sidecar still runs, so when it became unready":   {pod: podOf(1, 1, endedAt(at(5), 0), sidecarEnds(time.Time{}), notReadySince(at(3))), want: at(3)},
		"a container still runs, so when it became unready": {pod: podOf(1, 1, endedAt(at(5), 0), restarted(0), notReadySince(at(3))), want: at(3)},
		"when its deletion was asked for":                   {pod: podOf(1, 1, deletedAt(at(20), 30)), want: at(20)},
		"else when it was created":                          {pod: podOf(1, 1), want: epoch},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := wire.PodFacts(tc.pod)
			if got := facts.EndTime(); !got.Equal(tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// An orderCase is observations of one pod, and how it counts after them.
type orderCase struct {
	do         func(*Job)
	wantActive int32
	wantRows   int
}

func observeEach(t *testing.T, cases map[string]orderCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			tc.do(tr)
			v := mustView(t, tr, ViewOptions{})
			if v.Pods.Active != tc.wantActive || len(v.Unaccounted) != tc.wantRows {
				t.Errorf("got active %d, rows %d; want %d, %d", v.Pods.Active, len(v.Unaccounted), tc.wantActive, tc.wantRows)
			}
		})
	}
}

func TestObservationsAreOrderedByVersion(t *testing.T) {
	observeEach(t, map[string]orderCase{
		"an older event after a newer response changes nothing": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 5, inPhase(corev1.PodFailed)), Response)
				tr.ObservePod(podOf(1, 4, tracked, inPhase(corev1.PodFailed)), Watch)
			},
		},
		"versions compare as numbers": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 10, tracked), Watch)
				tr.ObservePod(podOf(1, 9, tracked, inPhase(corev1.PodFailed)), Watch)
			},
			wantActive: 1,
		},
		"a pod that left and is adopted again is back": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 1, tracked), Watch)
				tr.PodLeft(podOf(1, 2), Watch)
				tr.ObservePod(podOf(1, 3, tracked), Response)
			},
			wantActive: 1,
		},
		"a pod that only a response has shown is gone when the watch has passed it over": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 5, tracked), Response)
				tr.SweepPods(5, notStored)
			},
		},
		"a pod that the watch has yet to reach stays": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 5, tracked), Response)
				tr.SweepPods(4, notStored)
			},
			wantActive: 1,
		},
	})
}

func TestAPodThatIsGoneStaysGone(t *testing.T) {
	observeEach(t, map[string]orderCase{
		"a late response does not bring a pod back that is gone": {
			do: func(tr *Job) {
				tr.BeginCall()
				tr.ObservePod(podOf(1, 4, tracked), Watch)
				tr.PodGone(uidOf(1), Watch)
				_ = tr.View(ViewOptions{})
				tr.ObservePod(podOf(1, 5, tracked), Response)
			},
		},
		"a watch that lags does not bring a pod back that a list has shown to be gone": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 10, tracked), Watch)
				tr.BeginList().End(nil, "50")
				_ = tr.View(ViewOptions{Uncounted: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{uidOf(1)}}})
				_ = tr.View(ViewOptions{})
				tr.ObservePod(podOf(1, 20, tracked, inPhase(corev1.PodSucceeded)), Watch)
			},
		},
		"a watch that lags does not bring a pod back that the answer to a write has shown to be gone": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 10, tracked), Watch)
				tr.PodGone(uidOf(1), Response)
				_ = tr.View(ViewOptions{})
				tr.ObservePod(podOf(1, 20, tracked, inPhase(corev1.PodSucceeded)), Watch)
			},
		},
	})
}

func TestAPodThatThisProcessDeletedIsNotActive(t *testing.T) {
	observeEach(t, map[string]orderCase{
		"it is listed only when an observation shows how it stood then": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 1, tracked), Watch)
				tr.PodDeleted(uidOf(1))
				tr.ObservePod(podOf(1, 2, tracked, inPhase(corev1.PodRunning)), Watch)
			},
		},
		"the watch shows it": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 1, tracked), Watch)
				tr.PodDeleted(uidOf(1))
				tr.ObservePod(podOf(1, 2, tracked, inPhase(corev1.PodSucceeded), deletedAt(epoch, 0)), Watch)
			},
			wantRows: 1,
		},
	})
}

func TestReleasesAreConfirmedOnlyWhenTheFinalizerIsKnownToBeGone(t *testing.T) {
	tr := New(Key{}, nil)
	tr.ObservePod(podOf(1, 1, tracked, inPhase(corev1.PodFailed)), Watch)
	tr.ObservePod(podOf(2, 1, inPhase(corev1.PodFailed)), Watch)
	tr.ObservePod(podOf(3, 1, tracked, inPhase(corev1.PodFailed)), Watch)
	tr.PodGone(uidOf(3), Watch)
	tr.ObservePod(podOf(4, 1, inPhase(corev1.PodFailed)), Watch)
	q := ViewOptions{Uncounted: &batchv1.UncountedTerminatedPods{
		Succeeded: []types.UID{uidOf(1)}, Failed: []types.UID{uidOf(3), uidOf(2)},
	}}
	want := [][]byte{uidBytes(2), uidBytes(3)}
	if diff := cmp.Diff(want, mustView(t, tr, q).Confirmed); diff != "" {
		t.Errorf("confirmed (-want +got):\n%s", diff)
	}
	tr.ObservePod(podOf(1, 2, inPhase(corev1.PodFailed)), Response)
	want = [][]byte{uidBytes(1), uidBytes(2), uidBytes(3)}
	if diff := cmp.Diff(want, mustView(t, tr, q).Confirmed); diff != "" {
		t.Errorf("confirmed after the response (-want +got):\n%s", diff)
	}
}

func TestCreationsOfUnknownOutcomeStayInFlightUntilAList(t *testing.T) {
	tr := New(Key{}, nil)
	tr.SetPolicy(Policy{Policy: podfacts.Policy{Indexed: true}})
	tr.BeginCreate(0).Created(podOf(1, 10, withIndex("0")))
	tr.BeginCreate(1).Refused()
	tr.BeginCreate(2).Unknown(false)
	tr.BeginCreate(3).Unknown(false)
	want := &jobpolicyv1.InFlight{Creates: 2, CreateIndexes: &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: 2, Last: 3}}}}
	if diff := cmp.Diff(want, mustView(t, tr, ViewOptions{}).InFlight, protocmp.Transform()); diff != "" {
		t.Fatalf("in flight (-want +got):\n%s", diff)
	}
	list := tr.BeginList()
	tr.BeginCreate(4).Unknown(false) // Ended after the list began: not settled by it.
	list.End([]*podcache.Pod{podOf(1, 10, withIndex("0")), podOf(2, 11, withIndex("2"))}, "20")
	v := mustView(t, tr, ViewOptions{})
	want = &jobpolicyv1.InFlight{Creates: 1, CreateIndexes: oneIndex(4)}
	if diff := cmp.Diff(want, v.InFlight, protocmp.Transform()); diff != "" {
		t.Errorf("in flight after the list (-want +got):\n%s", diff)
	}
	if v.Pods.Active != 2 || !tr.NeedsList() {
		t.Errorf("got active %d, needs a list %v; want 2, true", v.Pods.Active, tr.NeedsList())
	}
}

func TestPodsMissingInAListCountNowhere(t *testing.T) {
	tr := New(Key{}, nil)
	tr.ObservePod(podOf(1, 10, tracked), Response)
	list := tr.BeginList()
	tr.ObservePod(podOf(2, 30, tracked), Response) // Created while the list was under way.
	list.End(nil, "20")
	if active := mustView(t, tr, ViewOptions{}).Pods.Active; active != 1 {
		t.Errorf("%d pods are active, want the one that is newer than the list", active)
	}
	tr.PodGone(uidOf(1), Watch)
	if _, known := tr.Pod(uidOf(1)); known {
		t.Error("a pod older than the list and not in it is still known when the watch has shown its end")
	}
	if _, known := tr.Pod(uidOf(2)); !known {
		t.Error("a pod newer than the list was dropped")
	}
}

// A retryCase is observations of pods, and the retry facts that follow from them.
type retryCase struct {
	policy       Policy
	early, do    func(*Job) // before and after the policy is known
	wantFailures []int      // seconds
	wantSuccess  int        // seconds; 0: never
}

func retryEach(t *testing.T, cases map[string]retryCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			if tc.early != nil {
				tc.early(tr)
			}
			tr.SetPolicy(tc.policy)
			if tc.do != nil {
				tc.do(tr)
			}
			var want *jobpolicyv1.RetryFacts
			if tc.wantSuccess != 0 || len(tc.wantFailures) > 0 {
				want = &jobpolicyv1.RetryFacts{}
			}
			if tc.wantSuccess != 0 {
				want.LastSuccessTime = timestamppb.New(at(tc.wantSuccess))
			}
			for _, s := range tc.wantFailures {
				want.RecentFailures = append(want.RecentFailures, &jobpolicyv1.PodFailureFact{FinishedTime: timestamppb.New(at(s))})
			}
			onlyTimes := protocmp.IgnoreFields(&jobpolicyv1.PodFailureFact{}, "failure", "index") // TestOfAFailureOnlyWhatThePolicyAsksForIsTold compares these.
			if diff := cmp.Diff(want, mustView(t, tr, ViewOptions{}).Retry, protocmp.Transform(), onlyTimes); diff != "" {
				t.Errorf("retry facts (-want +got):\n%s", diff)
			}
		})
	}
}

// at is so many seconds after the epoch.
func at(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }

// fails is a pod that failed at a second.
func fails(n, rv, s int, more ...option) *podcache.Pod {
	return podOf(n, rv, append([]option{tracked, inPhase(corev1.PodFailed), endedAt(at(s), 1)}, more...)...)
}

func TestRetryFacts(t *testing.T) {
	retryEach(t, map[string]retryCase{
		"failures outlive their pods": {
			do: func(tr *Job) {
				tr.ObservePod(fails(1, 1, 3), Watch)
				tr.PodGone(uidOf(1), Watch)
			},
			wantFailures: []int{3},
		},
		// kubernetes#114516: releasing a failed pod must not make its failure forgotten.
		"the release of a failed pod changes nothing": {
			do: func(tr *Job) {
				tr.ObservePod(fails(1, 1, 3), Watch)
				released := podOf(1, 2, inPhase(corev1.PodFailed), endedAt(at(3), 1))
				tr.ObservePod(released, Response)
				tr.ObservePod(released, Watch)
			},
			wantFailures: []int{3},
		},
		// The engine leaves aside what comes before the success, unless the success is
		// said to lie in the future.
		"a success is told beside failures, whatever order they are seen in": {
			do: func(tr *Job) {
				tr.ObservePod(fails(1, 1, 9), Watch)
				tr.ObservePod(podOf(2, 1, tracked, inPhase(corev1.PodSucceeded), endedAt(at(5), 0)), Watch)
				tr.ObservePod(fails(3, 1, 4), Watch)
				tr.ObservePod(fails(4, 1, 7), Watch)
			},
			wantFailures: []int{4, 7, 9}, wantSuccess: 5,
		},
		"a pod that never had the finalizer and fails by itself is a failure": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 1, inPhase(corev1.PodRunning)), Watch)
				tr.ObservePod(podOf(1, 2, inPhase(corev1.PodFailed), endedAt(at(3), 1)), Watch)
			},
			wantFailures: []int{3},
		},
		"a pod cannot have failed before it was created, whatever its node's clock says": {
			do:           func(tr *Job) { tr.ObservePod(fails(1, 1, 3, createdAt(at(60))), Watch) },
			wantFailures: []int{60},
		},
		"after a restart, failures are read from the pods that are left": {
			do:           func(tr *Job) { tr.ObservePod(podOf(1, 9, inPhase(corev1.PodFailed), endedAt(at(8), 1)), Watch) },
			wantFailures: []int{8},
		},
	})
}

func TestRetryFactsOfDeletedPods(t *testing.T) {
	retryEach(t, map[string]retryCase{
		"a pod being deleted is a failure, and its real end replaces the guess": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 1, tracked, deletedAt(at(2), 0)), Watch)
				tr.ObservePod(fails(1, 2, 6, deletedAt(at(2), 0)), Watch)
			},
			wantFailures: []int{6},
		},
		"with replacement policy Failed, a pod being deleted is no failure yet": {
			policy: Policy{Policy: podfacts.Policy{ReplaceFailedOnly: true}},
			do:     func(tr *Job) { tr.ObservePod(podOf(1, 1, tracked, deletedAt(at(2), 0)), Watch) },
		},
		"a pod that is released and then deleted is no failure, even if it ends as Failed": {
			do: func(tr *Job) {
				tr.ObservePod(podOf(1, 1, tracked, inPhase(corev1.PodRunning)), Watch)
				tr.ObservePod(podOf(1, 2, inPhase(corev1.PodRunning)), Response)
				tr.PodDeleted(uidOf(1))
				tr.ObservePod(podOf(1, 3, inPhase(corev1.PodFailed), endedAt(at(4), 143), deletedAt(at(3), 0)), Watch)
			},
		},
	})
}

func TestRetryFactsFollowThePolicy(t *testing.T) {
	retryEach(t, map[string]retryCase{
		"pods of indexes that the Job does not ask for, or of none, say nothing": {
			policy: Policy{Policy: podfacts.Policy{Indexed: true, Completions: 2}},
			do: func(tr *Job) {
				tr.ObservePod(fails(1, 1, 3, withIndex("1")), Watch)
				tr.ObservePod(fails(2, 1, 4, withIndex("2")), Watch)
				tr.ObservePod(fails(3, 1, 5), Watch)
				tr.ObservePod(podOf(4, 1, tracked, inPhase(corev1.PodSucceeded), endedAt(at(6), 0), withIndex("2")), Watch)
			},
			wantFailures: []int{3},
		},
		"an index that the Job asks for from now on says something": {
			policy: Policy{Policy: podfacts.Policy{Indexed: true, Completions: 2}},
			do: func(tr *Job) {
				tr.ObservePod(fails(1, 1, 3, withIndex("2")), Watch)
				tr.SetPolicy(Policy{Policy: podfacts.Policy{Indexed: true, Completions: 3}})
			},
			wantFailures: []int{3},
		},
		"pods that are seen before their Job count as the Job says": {
			policy: Policy{Policy: podfacts.Policy{ReplaceFailedOnly: true}},
			early: func(tr *Job) {
				tr.ObservePod(podOf(1, 1, tracked, deletedAt(at(2), 0)), Watch)
				tr.ObservePod(fails(2, 1, 4), Watch)
			},
			wantFailures: []int{4},
		},
	})
}

func TestRetryFactsKeepTheLatestFailures(t *testing.T) {
	tr := New(Key{}, nil)
	for n := range 100 {
		tr.ObservePod(podOf(n, 1, tracked, inPhase(corev1.PodFailed), endedAt(epoch.Add(time.Duration(n)*time.Second), 1)), Watch)
	}
	got := mustView(t, tr, ViewOptions{}).Retry.GetRecentFailures()
	if len(got) != 64 {
		t.Fatalf("got %d failures, want 64", len(got))
	}
	if first := got[0].GetFinishedTime().AsTime(); !first.Equal(epoch.Add(36 * time.Second)) {
		t.Errorf("oldest failure kept is of %v, want the 37th", first)
	}
}

func TestActiveRowsAreCutAndSaySo(t *testing.T) {
	tr := New(Key{}, nil)
	for n := range 3 {
		tr.ObservePod(podOf(n, 1, tracked, inPhase(corev1.PodRunning), isReady, restarted(int32(n))), Watch)
	}
	got := mustView(t, tr, ViewOptions{ActiveRows: 2}).Active
	if len(got.Pods) != 2 || !got.Truncated {
		t.Fatalf("got %d rows, truncated %v; want 2, true", len(got.Pods), got.Truncated)
	}
	want := &jobpolicyv1.ActivePod{
		Uid: uidBytes(1), Phase: jobpolicyv1.PodPhase_POD_PHASE_RUNNING, Ready: true, ReadySince: timestamppb.New(epoch),
		MaxRestarts: 1, CreatedTime: timestamppb.New(epoch), Tracked: true,
	}
	if diff := cmp.Diff(want, got.Pods[1], protocmp.Transform()); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func TestPodsThatWaitedLongestAreListedFirst(t *testing.T) {
	tr := New(Key{}, nil)
	succeeded := inPhase(corev1.PodSucceeded)
	for _, n := range []int{7, 2, 9, 4, 1} {
		tr.ObservePod(podOf(n, 1, tracked, succeeded), Watch)
	}
	listed := func(q ViewOptions) []string {
		v := mustView(t, tr, q)
		tracked := len(tr.WithTrackingFinalizer())
		if missing := v.Unlisted.GetSucceeded(); int(missing)+len(v.Unaccounted) != tracked {
			t.Errorf("%d listed and %d not, of %d", len(v.Unaccounted), missing, tracked)
		}
		var names []string
		for _, row := range v.Unaccounted {
			names = append(names, strconv.Itoa(int(row.Uid[15])))
		}
		return names
	}
	for _, step := range []struct {
		change func()
		ask    ViewOptions
		want   []string // In order of UID.
	}{
		{ask: ViewOptions{MaxRows: 3}, want: []string{"2", "7", "9"}},
		{ask: ViewOptions{MaxRows: 2, Uncounted: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{uidOf(1)}}}, want: []string{"1", "7"}},
		// A newer version of a pod keeps its place; a released or deleted pod has none.
		{change: func() { tr.ObservePod(podOf(7, 2, tracked, succeeded, isReady), Watch) }, ask: ViewOptions{MaxRows: 1}, want: []string{"7"}},
		{change: func() { tr.ObservePod(podOf(7, 3, succeeded), Watch); tr.PodGone(uidOf(2), Watch) }, ask: ViewOptions{MaxRows: 2}, want: []string{"4", "9"}},
		{change: func() { tr.SetPolicy(Policy{}) }, ask: ViewOptions{MaxRows: 1}, want: []string{"9"}},
	} {
		if step.change != nil {
			step.change()
		}
		if diff := cmp.Diff(step.want, listed(step.ask)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", step.ask, diff)
		}
	}
}

// A pod that is being deleted may take a long time to end. Pods that can be counted are
// listed before it.
func TestPodsThatCanBeCountedAreListedFirst(t *testing.T) {
	for replaceFailedOnly, want := range map[bool]string{false: "1", true: "2"} {
		tr := New(Key{}, nil)
		tr.SetPolicy(Policy{Policy: podfacts.Policy{ReplaceFailedOnly: replaceFailedOnly}})
		tr.ObservePod(podOf(1, 1, tracked, inPhase(corev1.PodRunning), deletedAt(epoch, 3600)), Watch)
		tr.ObservePod(podOf(2, 1, tracked, inPhase(corev1.PodSucceeded)), Watch)
		rows := mustView(t, tr, ViewOptions{MaxRows: 1}).Unaccounted
		if len(rows) != 1 || strconv.Itoa(int(rows[0].Uid[15])) != want {
			t.Errorf("replacing failed pods only: %v: rows %v, want pod %s", replaceFailedOnly, rows, want)
		}
	}
}

// With limits per index, a failed pod stays in the list until it is replaced. Failed pods
// that fill a short list must not hide a pod that has succeeded.
func TestFailedPodsThatStayInTheListHideNoSucceededPod(t *testing.T) {
	tr := New(Key{}, nil)
	tr.SetPolicy(Policy{Policy: podfacts.Policy{LimitedPerIndex: true}})
	for n := range 3 {
		tr.ObservePod(podOf(n, 1, tracked, inPhase(corev1.PodFailed), withIndex(strconv.Itoa(n))), Watch)
	}
	tr.ObservePod(podOf(3, 1, tracked, inPhase(corev1.PodSucceeded), withIndex("3")), Watch)
	var listed []int
	for _, row := range mustView(t, tr, ViewOptions{MaxRows: 2}).Unaccounted {
		listed = append(listed, int(row.Uid[15]))
	}
	if want := []int{0, 3}; !slices.Equal(listed, want) {
		t.Errorf("listed pods %v, want %v: the pod that succeeded, and the failed pod that has waited longest", listed, want)
	}
}

// The API server takes any text as an uncounted UID. None of these can be a pod's.
func TestUncountedUIDsThatNoPodCanHaveAreNotConfirmed(t *testing.T) {
	got := mustView(t, New(Key{}, nil), ViewOptions{Uncounted: &batchv1.UncountedTerminatedPods{
		Succeeded: []types.UID{"x"}, Failed: []types.UID{types.UID(strings.ToUpper(string(uidOf(0xa)))), uidOf(0xa)},
	}}).Confirmed
	if want := [][]byte{uidBytes(0xa)}; !cmp.Equal(want, got) {
		t.Errorf("confirmed %x, want %x", got, want)
	}
}

func TestAbsencesAreForgotten(t *testing.T) {
	tr := New(Key{}, nil)
	for i := range 50 {
		tr.ObservePod(podOf(i, 1, tracked), Watch)
	}
	end := tr.BeginCall()
	for i := range 25 {
		tr.PodGone(uidOf(i), Watch)
	}
	if len(tr.absent) != 25 {
		t.Errorf("%d absences are kept while a response is under way, want 25", len(tr.absent))
	}
	end()
	for i := 25; i < 50; i++ {
		tr.PodGone(uidOf(i), Response)
		tr.PodGone(uidOf(i), Watch)
	}
	tr.PodGone(uidOf(99), Watch)
	if len(tr.absent) != 0 {
		t.Errorf("%d absences are kept that nothing can undo", len(tr.absent))
	}
}
