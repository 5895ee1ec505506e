package executor

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/internal/gang"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func gangJob(job *batchv1.Job) {
	mode, n := batchv1.IndexedCompletion, int32(2)
	job.Spec.CompletionMode, job.Spec.Parallelism, job.Spec.Completions = &mode, &n, &n
	job.Spec.Template.Spec.PriorityClassName = "high"
	job.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{
		SchedulingPolicy:      &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{}},
		SchedulingConstraints: &schedulingv1alpha3.WorkloadPodGroupSchedulingConstraints{Topology: []schedulingv1alpha3.TopologyConstraint{{Key: "zone"}}},
		DisruptionMode:        &schedulingv1alpha3.WorkloadPodGroupDisruptionMode{All: &schedulingv1alpha3.WorkloadPodGroupAllDisruptionMode{}},
		ResourceClaims:        []schedulingv1alpha3.WorkloadPodGroupResourceClaim{{Name: "gpu", ResourceClaimName: new("claim")}},
	}
}

func gangConfig(s *server, decider Decider) Config {
	cfg := testConfig(s, decider)
	cfg.Settings = &jobpolicyv1.Settings{PodGroups: jobpolicyv1.PodGroups_POD_GROUPS_ALL}
	return cfg
}

// gangDecision creates two pods of a gang.
func gangDecision(mayCreate bool) *jobpolicyv1.DecideJobResponse {
	return &jobpolicyv1.DecideJobResponse{
		Gang:   &jobpolicyv1.Gang{MinCount: 2, MaxCount: 2, MayCreate: mayCreate},
		Create: &jobpolicyv1.CreatePods{Count: 2, Indexes: &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: 0, Last: 1}}}},
		Status: &jobpolicyv1.JobStatus{Active: 2},
	}
}

// aWorkload refers to the Job and is controlled by it, unless changed.
func aWorkload(name string, change ...func(*schedulingv1beta1.Workload)) *schedulingv1beta1.Workload {
	w, err := gang.NewWorkload(testJob(gangJob), 2)
	must(err)
	w.Name, w.UID = name, types.UID("uid of "+name)
	for _, f := range change {
		f(w)
	}
	return w
}

// aPodGroup is of the Workload "theirs", and controlled by the Job, unless
// changed.
func aPodGroup(name string, change ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
	w := aWorkload("theirs")
	g, err := gang.NewPodGroup(testJob(gangJob), w, w.Spec.PodGroupTemplates[0].Name)
	must(err)
	g.Name = name
	for _, f := range change {
		f(g)
	}
	return g
}

// podGroups lists the PodGroup that each pod names, or "none".
func (s *server) podGroups(t *testing.T) []string {
	t.Helper()
	pods, err := s.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pods.Items {
		name := "none"
		if group := pods.Items[i].Spec.SchedulingGroup; group != nil {
			name = *group.PodGroupName
		}
		names = append(names, name)
	}
	return names
}

func TestAGangIsMadeBeforeItsPods(t *testing.T) {
	s := newServer(testJob(gangJob))
	decider := &script{Answers: []reply{applying(gangDecision(true))}}
	start(t, gangConfig(s, decider))
	decider.Await(t, 2)
	s.WantWrites(t, "create workloads", "create podgroups", "create pods", "create pods", "update jobs/status")
	name := gang.PodGroupName(gang.WorkloadName(testJob()), "job-pgt-0")
	if diff := cmp.Diff([]string{name, name}, s.podGroups(t)); diff != "" {
		t.Errorf("groups of the pods (-want +got):\n%s", diff)
	}
	checkGang(t, s, name)
	if got, want := s.AwaitEvent(t, "WorkloadCreated").Message, "Created Workload "+gang.WorkloadName(testJob())+" for Job job"; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	if decider.Requests()[0].GetSettings().GetPodGroups() == 0 {
		t.Error("the engine is not told that gangs are wanted")
	}
}

func checkGang(t *testing.T, s *server, name string) {
	t.Helper()
	yes := true
	job := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: testUID(1), Controller: &yes, BlockOwnerDeletion: &yes}
	policy := schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}}
	constraints := &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: "zone"}}}
	mode := &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	claims := []schedulingv1beta1.PodGroupResourceClaim{{Name: "gpu", ResourceClaimName: new("claim")}}
	w, err := s.SchedulingV1beta1().Workloads("ns").Get(t.Context(), gang.WorkloadName(testJob()), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantSpec := schedulingv1beta1.WorkloadSpec{
		ControllerRef: &schedulingv1beta1.TypedLocalObjectReference{APIGroup: "batch", Kind: "Job", Name: "job"},
		PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{{
			Name: "job-pgt-0", SchedulingPolicy: policy, PriorityClassName: "high", SchedulingConstraints: constraints, DisruptionMode: mode, ResourceClaims: claims,
		}},
	}
	if diff := cmp.Diff(wantSpec, w.Spec) + cmp.Diff([]metav1.OwnerReference{job}, w.OwnerReferences); diff != "" {
		t.Errorf("Workload (-want +got):\n%s", diff)
	}
	g, err := s.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantGroup := schedulingv1beta1.PodGroupSpec{
		WorkloadRef:      &schedulingv1beta1.WorkloadReference{WorkloadName: w.Name, TemplateName: "job-pgt-0"},
		SchedulingPolicy: policy, PriorityClassName: "high", SchedulingConstraints: constraints, DisruptionMode: mode, ResourceClaims: claims,
	}
	owners := []metav1.OwnerReference{job, {APIVersion: "scheduling.k8s.io/v1beta1", Kind: "Workload", Name: w.Name, UID: w.UID}}
	if diff := cmp.Diff(wantGroup, g.Spec) + cmp.Diff(owners, g.OwnerReferences); diff != "" {
		t.Errorf("PodGroup (-want +got):\n%s", diff)
	}
}

// The names of what the executor makes for the test's Job, and of the PodGroup that it makes
// for the Workload "theirs".
var (
	ownWorkload   = gang.WorkloadName(testJob())
	ownGroup      = gang.PodGroupName(ownWorkload, "job-pgt-0")
	groupOfTheirs = gang.PodGroupName("theirs", "job-pgt-0")
)

func TestWhatThereIsOfAGangIsUsed(t *testing.T) {
	pods := []string{"create pods", "create pods", "update jobs/status"}
	after := func(writes ...string) []string { return append(writes, pods...) }
	cases := map[string]struct {
		objects   []runtime.Object
		unseen    bool // in the caches
		begun     bool
		wantGroup string
		want      []string
	}{
		"found by what they refer to, whatever their names": {
			objects: []runtime.Object{aWorkload("theirs"), aPodGroup("group")}, begun: true,
			wantGroup: "group", want: pods,
		},
		"a Workload whose PodGroup was not made yet": {
			objects:   []runtime.Object{aWorkload("theirs")},
			wantGroup: groupOfTheirs, want: after("create podgroups"),
		},
		"a PodGroup that is gone is made again": {
			objects: []runtime.Object{aWorkload("theirs")}, begun: true,
			wantGroup: groupOfTheirs, want: after("create podgroups"),
		},
		"made, and not seen yet": {
			objects: []runtime.Object{aWorkload(ownWorkload), aPodGroup(ownGroup)}, unseen: true,
			wantGroup: ownGroup, want: after("create workloads", "create podgroups"),
		},
		"made, not seen yet, and the Job has begun": {
			objects: []runtime.Object{aWorkload(ownWorkload), aPodGroup(ownGroup)}, unseen: true, begun: true,
			wantGroup: ownGroup, want: after("create podgroups"),
		},
		"left of an earlier Job of this name": {
			objects: []runtime.Object{
				aWorkload("theirs", func(w *schedulingv1beta1.Workload) { earlier(w.OwnerReferences) }),
				aPodGroup("group", func(g *schedulingv1beta1.PodGroup) { earlier(g.OwnerReferences) }),
			},
			wantGroup: ownGroup, want: after("create workloads", "create podgroups"),
		},
		"no Workload, and the Job has begun": {begun: true, wantGroup: "none", want: pods},
		"a Workload that the Job does not control": {
			objects:   []runtime.Object{aWorkload("theirs", func(w *schedulingv1beta1.Workload) { w.OwnerReferences = nil })},
			wantGroup: ownGroup, want: after("create workloads", "create podgroups"),
		},
		"a Workload that the Job does not control, and its name": {
			objects: []runtime.Object{aWorkload(ownWorkload, func(w *schedulingv1beta1.Workload) { w.OwnerReferences = nil })}, wantGroup: "none", want: after("create workloads"),
		},
		"two Workloads": {objects: []runtime.Object{aWorkload("theirs"), aWorkload("another")}, wantGroup: "none", want: pods},
		"a PodGroup that the Job does not control": {
			objects:   []runtime.Object{aWorkload("theirs"), aPodGroup("group", func(g *schedulingv1beta1.PodGroup) { g.OwnerReferences = nil })},
			wantGroup: groupOfTheirs, want: after("create podgroups"),
		},
		"two PodGroups": {
			objects:   []runtime.Object{aWorkload("theirs"), aPodGroup("group"), aPodGroup("another")},
			wantGroup: "none", want: pods,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(append(tc.objects, testJob(gangJob))...)
			if tc.unseen {
				s.hide("workloads", &schedulingv1beta1.WorkloadList{})
				s.hide("podgroups", &schedulingv1beta1.PodGroupList{})
			}
			decider := &script{Answers: []reply{applying(gangDecision(!tc.begun))}}
			start(t, gangConfig(s, decider))
			decider.Await(t, 2)
			s.WantWrites(t, tc.want...)
			if diff := cmp.Diff([]string{tc.wantGroup, tc.wantGroup}, s.podGroups(t)); diff != "" {
				t.Errorf("groups of the pods (-want +got):\n%s", diff)
			}
		})
	}
}

// earlier makes an owner an earlier Job of the same name.
func earlier(refs []metav1.OwnerReference) { refs[0].UID, refs[0].APIVersion = testUID(99), "batch/v2" }

func twoTemplates(w *schedulingv1beta1.Workload) {
	second := w.Spec.PodGroupTemplates[0]
	second.Name = "second"
	w.Spec.PodGroupTemplates = append(w.Spec.PodGroupTemplates, second)
}

func ofThree(w *schedulingv1beta1.Workload) {
	w.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount = 3
}

// hide keeps a resource out of caches; its objects can still be read.
func (s *server) hide(resource string, empty runtime.Object) {
	s.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, empty, nil })
	s.PrependWatchReactor(resource, clienttesting.DefaultWatchReactor(watch.NewRaceFreeFake(), nil))
}

func TestAJobDoesNotBeginWithoutItsGang(t *testing.T) {
	for _, write := range []string{"create workloads", "create podgroups"} {
		t.Run(write, func(t *testing.T) {
			s := newServer(testJob(gangJob))
			s.Failures[write] = fakes.FailFirst(2, apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "", errors.New("exceeded quota: q")))
			decider := &script{Answers: []reply{applying(gangDecision(true)), applying(gangDecision(true)), applying(gangDecision(true))}}
			start(t, gangConfig(s, decider))
			decider.Await(t, 4)
			writes := s.Done()
			last := len(writes) - 3
			if diff := cmp.Diff([]string{"create pods", "create pods", "update jobs/status"}, writes[last:]); diff != "" {
				t.Errorf("last writes (-want +got):\n%s", diff)
			}
			for _, w := range writes[:last] {
				if w != "create workloads" && w != "create podgroups" {
					t.Errorf("%s before there was a gang: %v", w, writes)
				}
			}
			for _, req := range decider.Requests() {
				if deferredUntil(req, jobpolicyv1.Step_STEP_CREATE_PODS) != nil {
					t.Error("only creation is deferred, so that the engine would let the Job begin")
				}
			}
			if n := s.Tries(write); n != 3 {
				t.Errorf("%s was tried %d times, want 3", write, n)
			}
			if groups := s.podGroups(t); groups[0] == "none" || groups[1] == "none" {
				t.Errorf("groups of the pods: %v", groups)
			}
		})
	}
}

// If a quota refuses a PodGroup, finished pods of a running Job are still counted.
func TestAGangThatCannotBeCreatedAgainDefersCreationOnly(t *testing.T) {
	s := newServer(testJob(gangJob), aWorkload("theirs"), testPod(2, failedPhase))
	s.Failures["create podgroups"] = func(int) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, "", errors.New("exceeded quota: q"))
	}
	decider := &script{Answers: []reply{
		applying(gangDecision(false)),
		applying(&jobpolicyv1.DecideJobResponse{Status: recorded(t, 2), Release: uidsOf(t, 2)}),
	}}
	start(t, gangConfig(s, decider))
	decider.Await(t, 3)
	s.WantWrites(t, "create podgroups", "update jobs/status", "patch pods")
	if deferredUntil(decider.Requests()[1], jobpolicyv1.Step_STEP_CREATE_PODS) == nil {
		t.Error("the engine is not told to defer creation")
	}
}

func TestWithoutTheGateNothingIsReadOrMade(t *testing.T) {
	s := newServer(testJob(gangJob))
	decider := &script{Answers: []reply{applying(gangDecision(true)), applying(&jobpolicyv1.DecideJobResponse{
		Create: gangDecision(true).GetCreate(),
	})}}
	start(t, testConfig(s, decider))
	decider.Await(t, 3)
	if diff := cmp.Diff([]string{"create pods", "create pods"}, s.Done()); diff != "" {
		t.Errorf("writes; the first answer breaks the contract (-want +got):\n%s", diff)
	}
	for _, action := range s.Actions() {
		if action.GetResource().Group == schedulingv1beta1.GroupName {
			t.Errorf("%s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
	if decider.Requests()[0].GetSettings().GetPodGroups() != 0 {
		t.Error("the engine is told that gangs are wanted")
	}
}

func TestATemplateWithAGroupIsAFactOfTheSpec(t *testing.T) {
	group := "g"
	s := newServer(testJob(func(j *batchv1.Job) {
		j.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}))
	decider := &script{Answers: []reply{applying(&jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}})}}
	start(t, gangConfig(s, decider))
	decider.Await(t, 2)
	if !decider.Requests()[0].GetSpec().GetHasSchedulingGroup() {
		t.Error("the engine is not told of the group")
	}
	if diff := cmp.Diff([]string{"g"}, s.podGroups(t)); diff != "" {
		t.Errorf("groups of the pods (-want +got):\n%s", diff)
	}
}

// If the context ends while the gang is read, nothing is known about the gang. The Job must
// not continue without it.
func TestAGangThatCannotBeReadIsNoGangless(t *testing.T) {
	s := newServer()
	s.PrependReactor("get", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, context.DeadlineExceeded
	})
	e := build(t, gangConfig(s, &script{}))
	name, err := e.gangs.Ensure(t.Context(), nil, testJob(gangJob), &jobpolicyv1.Gang{MinCount: 2, MaxCount: 2}, true)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the group is %q, %v; want an error", name, err)
	}
}

// A Workload that exists when the executor creates its own, and is deleted before the
// executor reads it, is no reason to schedule the pods one by one: the Job has not begun.
func TestAWorkloadDeletedBeforeItIsReadIsCreatedInAnotherTry(t *testing.T) {
	s := newServer()
	s.Failures["create workloads"] = fakes.FailFirst(1, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "workloads"}, ownWorkload))
	e := build(t, gangConfig(s, &script{}))
	want := &jobpolicyv1.Gang{MinCount: 2, MaxCount: 2, MayCreate: true}
	// api.ErrGone would say that the Job is gone.
	if name, err := e.gangs.Ensure(t.Context(), nil, testJob(gangJob), want, true); err == nil || errors.Is(err, api.ErrGone) {
		t.Errorf("the group is %q, %v; want an error", name, err)
	}
	if name, err := e.gangs.Ensure(t.Context(), nil, testJob(gangJob), want, true); name != ownGroup || err != nil {
		t.Errorf("the group in the next try is %q, %v; want %q", name, err, ownGroup)
	}
}

// minCounts are the minimums of the gang in the Workload and in the PodGroup of these names.
func (s *server) minCounts(t *testing.T, workload, group string) [2]int32 {
	t.Helper()
	w, err := s.SchedulingV1beta1().Workloads("ns").Get(t.Context(), workload, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return [2]int32{w.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount, g.Spec.SchedulingPolicy.Gang.MinCount}
}

func TestTheMinimumOfAGangFollowsTheDecision(t *testing.T) {
	groupOfThree := func(g *schedulingv1beta1.PodGroup) { g.Spec.SchedulingPolicy.Gang.MinCount = 3 }
	cases := map[string]struct {
		min, max int32
		create   bool
		want     []string
		counts   [2]int32
	}{
		"less, while the Job creates no pods": {min: 2, max: 2, want: []string{"patch workloads", "patch podgroups"}, counts: [2]int32{2, 2}},
		"more":                                {min: 4, max: 4, want: []string{"patch workloads", "patch podgroups"}, counts: [2]int32{4, 4}},
		"less before a pod is created": {
			min: 1, max: 1, create: true, want: []string{"patch workloads", "patch podgroups", "create pods", "create pods", "update jobs/status"}, counts: [2]int32{1, 1},
		},
		"less, which may wait": {min: 1, max: 3, counts: [2]int32{3, 3}},
		"the policy is Basic":  {counts: [2]int32{3, 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(testJob(gangJob), aWorkload("theirs", ofThree), aPodGroup("group", groupOfThree))
			d := &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
			decided := answering(d)
			if tc.create {
				d = gangDecision(false)
				decided = applying(d)
			}
			d.Gang = &jobpolicyv1.Gang{MinCount: tc.min, MaxCount: tc.max}
			decider := &script{Answers: []reply{decided}}
			start(t, gangConfig(s, decider))
			decider.Await(t, 1)
			fakes.Eventually(t, "the writes", func() bool { return len(s.Done()) >= len(tc.want) })
			s.WantWrites(t, tc.want...)
			if got := s.minCounts(t, "theirs", "group"); got != tc.counts {
				t.Errorf("minimums in Workload and PodGroup: %v, want %v", got, tc.counts)
			}
		})
	}
}
