package executor

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/internal/gang"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var parent = metav1.OwnerReference{APIVersion: "trainer.example.com/v1", Kind: "TrainJob", Name: "train", UID: testUID(50), Controller: new(true)}

// delegatedJob has a controller, which has delegated the group of its pods to it.
func delegatedJob(job *batchv1.Job) {
	gangJob(job)
	job.OwnerReferences = []metav1.OwnerReference{parent}
	job.Annotations = map[string]string{"scheduling.k8s.io/group-template-name": "workers"}
}

// parentWorkload has a gang of four as a template, unless changed.
func parentWorkload(change ...func(*schedulingv1beta1.Workload)) *schedulingv1beta1.Workload {
	w := &schedulingv1beta1.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "parents", UID: testUID(51), OwnerReferences: []metav1.OwnerReference{parent}},
		Spec: schedulingv1beta1.WorkloadSpec{
			ControllerRef: &schedulingv1beta1.TypedLocalObjectReference{APIGroup: "trainer.example.com", Kind: parent.Kind, Name: parent.Name},
			PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{
				{Name: "driver", SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}},
				{Name: "workers", SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 4}}},
			},
		},
	}
	for _, f := range change {
		f(w)
	}
	return w
}

// inGroup creates two pods in the group, and writes a status when their creation is deferred.
func inGroup(group *jobpolicyv1.Gang) reply {
	return func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		d := gangDecision(false)
		d.RequestId, d.Disposition, d.Gang = req.GetRequestId(), jobpolicyv1.Disposition_DISPOSITION_APPLY, group
		switch until := deferredUntil(req, jobpolicyv1.Step_STEP_CREATE_PODS); {
		case req.GetPods().GetActive() > 0:
			d.Disposition, d.Create, d.Status = jobpolicyv1.Disposition_DISPOSITION_SETTLED, nil, nil
		case until != nil && until.AsTime().After(req.GetNow().AsTime()):
			d.Create, d.Status, d.RequeueTime = nil, &jobpolicyv1.JobStatus{StartTime: req.GetNow()}, until
		}
		return d, nil
	}
}

func delegatedGroup() *jobpolicyv1.Gang {
	return &jobpolicyv1.Gang{MinCount: 2, MaxCount: 2, MayCreate: true, TemplateName: new("workers")}
}

// The next try is an hour away, so that only the Workload's event can make the Job due.
func waitConfig(s *server, decider Decider) Config {
	cfg := gangConfig(s, decider)
	cfg.APIBackoff, cfg.MaxAPIBackoff = time.Hour, time.Hour
	return cfg
}

func TestADelegatedJobWaitsForTheWorkloadOfItsController(t *testing.T) {
	cases := map[string]struct {
		before []runtime.Object
		want   string // in the event
	}{
		"no Workload": {want: "No pods are created yet: TrainJob train, which controls the Job, has no Workload yet"},
		"one of an earlier object of that name": {
			before: []runtime.Object{parentWorkload(func(w *schedulingv1beta1.Workload) { w.Name, w.OwnerReferences[0].UID = "earlier", testUID(99) })},
			want:   "No pods are created yet: TrainJob train, which controls the Job, has no Workload yet",
		},
		"one without the template": {
			before: []runtime.Object{parentWorkload(func(w *schedulingv1beta1.Workload) {
				w.Name, w.Spec.PodGroupTemplates = "z", w.Spec.PodGroupTemplates[:1]
			})},
			want: `No pods are created yet: Workload z of TrainJob train has no template "workers"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(append(tc.before, testJob(delegatedJob))...)
			start(t, waitConfig(s, &script{Otherwise: inGroup(delegatedGroup())}))
			if got := s.AwaitEvent(t, "WaitingForWorkload").Message; got != tc.want {
				t.Errorf("event %q, want %q", got, tc.want)
			}
			fakes.Eventually(t, "the status is written", func() bool { return slices.Contains(s.Done(), "update jobs/status") })
			if groups := s.podGroups(t); len(groups) > 0 {
				t.Errorf("pods before there is a group: %v", groups)
			}
			if _, err := s.SchedulingV1beta1().Workloads("ns").Create(t.Context(), parentWorkload(), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			group := gang.PodGroupName("parents", "workers")
			fakes.Eventually(t, "two pods in the group", func() bool { return slices.Equal(s.podGroups(t), []string{group, group}) })
			s.checkDelegated(t, group)
		})
	}
}

// checkDelegated checks the PodGroup: the Job is its only owner, and its gang is no larger than the Job.
func (s *server) checkDelegated(t *testing.T, name string) {
	t.Helper()
	g, err := s.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := schedulingv1beta1.PodGroupSpec{
		WorkloadRef:      &schedulingv1beta1.WorkloadReference{WorkloadName: "parents", TemplateName: "workers"},
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}},
	}
	if diff := cmp.Diff(want, g.Spec); diff != "" || len(g.OwnerReferences) != 1 || g.OwnerReferences[0].UID != testUID(1) {
		t.Errorf("PodGroup (-want +got):\n%s\nowners %v", diff, g.OwnerReferences)
	}
}

// The controller of a running Job changes its Workload: the PodGroup follows, as far as there are pods for it.
func TestADelegatedGangFollowsTheTemplate(t *testing.T) {
	small := func(w *schedulingv1beta1.Workload) { w.Spec.PodGroupTemplates[1].SchedulingPolicy.Gang.MinCount = 1 }
	s := newServer(testJob(delegatedJob), parentWorkload(small))
	start(t, waitConfig(s, &script{Otherwise: inGroup(delegatedGroup())}))
	minimum := func(want int32) func() bool {
		return func() bool {
			g, err := s.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), gang.PodGroupName("parents", "workers"), metav1.GetOptions{})
			return err == nil && g.Spec.SchedulingPolicy.Gang.MinCount == want
		}
	}
	fakes.Eventually(t, "a gang of one", minimum(1))
	fakes.Eventually(t, "two pods", func() bool { return len(s.podGroups(t)) == 2 })
	if _, err := s.SchedulingV1beta1().Workloads("ns").Update(t.Context(), parentWorkload(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	fakes.Eventually(t, "a gang of two", minimum(2))
}

// The Workload has two templates: no pods are created, and everything else goes on.
func TestAnUnusableWorkloadStopsOnlyTheCreationOfPods(t *testing.T) {
	s := newServer(testJob(gangJob), aWorkload(ownWorkload, twoTemplates))
	start(t, waitConfig(s, &script{Otherwise: inGroup(gangDecision(false).GetGang())}))
	want := "No pods are created yet: Workload " + ownWorkload + " has 2 templates of pod groups, want 1"
	if got := s.AwaitEvent(t, "WaitingForWorkload").Message; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	fakes.Eventually(t, "the status is written", func() bool { return slices.Contains(s.Done(), "update jobs/status") })
	if _, err := s.SchedulingV1beta1().Workloads("ns").Update(t.Context(), aWorkload(ownWorkload), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	fakes.Eventually(t, "two pods in the group", func() bool { return slices.Equal(s.podGroups(t), []string{ownGroup, ownGroup}) })
}
