package tracker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func onCodes(container string) batchv1.PodFailurePolicyRule {
	on := &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}}
	if container != "" {
		on.ContainerName = &container
	}
	return batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: on}
}

func onCondition(kind corev1.PodConditionType, status corev1.ConditionStatus) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: kind, Status: status}},
	}
}

func exited(name string, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func outOfMemory(name string) corev1.ContainerStatus {
	s := exited(name, 137)
	s.State.Terminated.Reason, s.State.Terminated.Signal = "OOMKilled", 9
	return s
}

// disrupted is the condition that is told in any case.
var disrupted = &jobpolicyv1.PodConditionPattern{Type: "DisruptionTarget", Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE}

// failuresTold are failed pods, and what is told of them.
var failuresTold = map[string]struct {
	rules      []batchv1.PodFailurePolicyRule
	containers []corev1.ContainerStatus
	inits      []corev1.ContainerStatus
	conditions []corev1.PodCondition
	reason     string
	noPolicy   bool
	want       *jobpolicyv1.PodFailure
}{
	"app containers come first, and those that succeeded do not come": {
		rules:      []batchv1.PodFailurePolicyRule{onCodes("")},
		containers: []corev1.ContainerStatus{exited("c", 3)},
		inits:      []corev1.ContainerStatus{exited("ok", 0), exited("init", 4)},
		want: &jobpolicyv1.PodFailure{ContainerExits: []*jobpolicyv1.ContainerExit{
			{ContainerName: "c", ExitCode: 3}, {ContainerName: "init", ExitCode: 4},
		}},
	},
	"of containers that no rule names, the first with each code": {
		rules:      []batchv1.PodFailurePolicyRule{onCodes(""), onCodes("named")},
		containers: []corev1.ContainerStatus{exited("a", 3), exited("b", 3), exited("named", 3), exited("d", 4)},
		want: &jobpolicyv1.PodFailure{ContainerExits: []*jobpolicyv1.ContainerExit{
			{ContainerName: "a", ExitCode: 3}, {ContainerName: "named", ExitCode: 3}, {ContainerName: "d", ExitCode: 4},
		}},
	},
	"no container but the one that the rules name, and the one that says how the Job ended": {
		rules:      []batchv1.PodFailurePolicyRule{onCodes("c")},
		containers: []corev1.ContainerStatus{exited("a", 3), exited("b", 3), exited("c", 3)},
		want: &jobpolicyv1.PodFailure{ContainerExits: []*jobpolicyv1.ContainerExit{
			{ContainerName: "a", ExitCode: 3}, {ContainerName: "c", ExitCode: 3},
		}},
	},
	"a container that ran out of memory says how the Job ended": {
		rules:      []batchv1.PodFailurePolicyRule{onCodes("a")},
		containers: []corev1.ContainerStatus{exited("a", 3), exited("b", 3), outOfMemory("c")},
		inits:      []corev1.ContainerStatus{outOfMemory("d")},
		want: &jobpolicyv1.PodFailure{ContainerExits: []*jobpolicyv1.ContainerExit{
			{ContainerName: "a", ExitCode: 3}, {ContainerName: "c", ExitCode: 137, Reason: "OOMKilled", Signal: 9},
		}},
	},
	"why a node ended the pod, without any policy": {
		noPolicy: true, reason: "Evicted",
		containers: []corev1.ContainerStatus{exited("a", 3), exited("b", 4)},
		conditions: []corev1.PodCondition{{Type: "Ready", Status: "False"}, {Type: "DisruptionTarget", Status: "True"}},
		want: &jobpolicyv1.PodFailure{
			Reason: "Evicted", NeverRan: true, Conditions: []*jobpolicyv1.PodConditionPattern{disrupted},
			ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "a", ExitCode: 3}},
		},
	},
	"no condition but those that the rules name": {
		rules: []batchv1.PodFailurePolicyRule{onCondition("DisruptionTarget", "True"), onCondition("example.com/Odd", "Unknown")},
		conditions: []corev1.PodCondition{
			{Type: "Ready", Status: "False"},
			{Type: "example.com/Odd", Status: "True"},
			{Type: "example.com/Odd", Status: "of no kind that the API has"},
			{Type: "DisruptionTarget", Status: "True"},
			{Type: "DisruptionTarget", Status: "True"},
		},
		want: &jobpolicyv1.PodFailure{Conditions: []*jobpolicyv1.PodConditionPattern{disrupted}},
	},
	"a policy without rules asks for nothing": {
		containers: []corev1.ContainerStatus{exited("a", 0)},
		conditions: []corev1.PodCondition{{Type: "example.com/Odd", Status: "True"}, {Type: "DisruptionTarget", Status: "False"}},
		want:       &jobpolicyv1.PodFailure{},
	},
	"that the pod was disrupted is told in any case: it need not delay the next pod": {
		rules:      []batchv1.PodFailurePolicyRule{onCodes("b")},
		conditions: []corev1.PodCondition{{Type: "DisruptionTarget", Status: "True"}},
		want:       &jobpolicyv1.PodFailure{Conditions: []*jobpolicyv1.PodConditionPattern{disrupted}},
	},
}

func TestOfAFailureOnlyWhatThePolicyAsksForIsTold(t *testing.T) {
	for name, tc := range failuresTold {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			if tr.SetPolicy(failing(tc.rules)); tc.noPolicy {
				tr.SetPolicy(Policy{})
			}
			tr.ObservePod(podOf(1, 1, tracked, inPhase(corev1.PodFailed), func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = tc.containers, tc.inits
				pod.Status.Conditions, pod.Status.Reason = tc.conditions, tc.reason
			}), Watch)
			tc.want.PodName = "p1"
			v := mustView(t, tr, ViewOptions{})
			if diff := cmp.Diff(tc.want, v.Unaccounted[0].Failure, protocmp.Transform()); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, v.Retry.RecentFailures[0].Failure, protocmp.Transform()); diff != "" {
				t.Errorf("retry fact (-want +got):\n%s", diff)
			}
		})
	}
}

// Somebody deletes a pod, and it ends: before that, in the same second, or later.
func TestWhetherADeletionEndedAPod(t *testing.T) {
	cases := map[string]struct {
		phase        corev1.PodPhase
		asked, ended int // seconds; ended 0: not known
		want         bool
	}{
		"it still runs":                       {phase: corev1.PodRunning, asked: 20, want: true},
		"it ended before":                     {phase: corev1.PodFailed, asked: 20, ended: 19},
		"it ended in the same second":         {phase: corev1.PodFailed, asked: 20, ended: 20, want: true},
		"it ended after":                      {phase: corev1.PodFailed, asked: 20, ended: 25, want: true},
		"nobody knows when it ended":          {phase: corev1.PodFailed, asked: 20},
		"it ended, and nobody has deleted it": {phase: corev1.PodFailed, ended: 25},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			tr.SetPolicy(Policy{})
			tr.ObservePod(podOf(1, 1, tracked, inPhase(tc.phase), func(pod *corev1.Pod) {
				if tc.asked != 0 {
					deleted, grace := metav1.NewTime(at(tc.asked+30)), int64(30)
					pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &deleted, &grace
				}
				if tc.ended != 0 {
					pod.Status.ContainerStatuses = []corev1.ContainerStatus{exited("c", 143)}
					pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(at(tc.ended))
				}
			}), Watch)
			if got := mustView(t, tr, ViewOptions{}).Unaccounted[0].GetFailure().GetDeletedBeforeEnd(); got != tc.want {
				t.Errorf("deleted before its end: %t, want %t", got, tc.want)
			}
		})
	}
}

// Restarts of containers count before a pod has failed, so the rows of active pods say how a
// container ended.
func TestRowsOfActivePodsTellTheLastRestart(t *testing.T) {
	tr := New(Key{}, nil)
	tr.SetPolicy(Policy{})
	for n := range 2 {
		tr.ObservePod(podOf(n+1, 1, tracked, inPhase(corev1.PodRunning), func(pod *corev1.Pod) {
			if n == 0 {
				last := outOfMemory("c").State
				last.Terminated.FinishedAt = metav1.NewTime(at(7))
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: 1, LastTerminationState: last}}
			}
		}), Watch)
	}
	rows := mustView(t, tr, ViewOptions{ActiveRows: 9}).Active.GetPods()
	want := &jobpolicyv1.ContainerExit{ContainerName: "c", ExitCode: 137, Reason: "OOMKilled", Signal: 9}
	if diff := cmp.Diff(want, rows[0].GetLastExit(), protocmp.Transform()); diff != "" {
		t.Errorf("last exit (-want +got):\n%s", diff)
	}
	if rows[0].GetPodName() != "p1" || !rows[0].GetLastExitTime().AsTime().Equal(at(7)) || rows[1].GetPodName() != "" || rows[1].GetLastExit() != nil {
		t.Errorf("rows %v", rows)
	}
}

func failing(rules []batchv1.PodFailurePolicyRule) Policy {
	return Policy{Policy: wire.PodPolicy(&batchv1.Job{Spec: batchv1.JobSpec{PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: rules}}})}
}

// One entry more than the contract takes would make every request about the Job
// invalid.
func TestAFailureKeepsWithinTheContract(t *testing.T) {
	rules := []batchv1.PodFailurePolicyRule{onCodes("")}
	for n := range 400 {
		rules = append(rules, onCondition(corev1.PodConditionType(fmt.Sprintf("example.com/%d", n)), "True"))
	}
	tr := New(Key{}, nil)
	tr.SetPolicy(failing(rules))
	tr.ObservePod(podOf(1, 1, tracked, inPhase(corev1.PodFailed), func(pod *corev1.Pod) {
		for n := range int32(2000) {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, exited(strings.Repeat("c", 300), n+1))
		}
		for n := range 400 {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(fmt.Sprintf("example.com/%d", n)), Status: "True"})
		}
	}), Watch)
	got := mustView(t, tr, ViewOptions{}).Unaccounted[0].GetFailure()
	if conditions, exits := len(got.GetConditions()), len(got.GetContainerExits()); conditions != 100 || exits != 1000 {
		t.Errorf("%d conditions and %d exits, want 100 and 1000", conditions, exits)
	}
	for _, exit := range got.GetContainerExits() {
		if n := len(exit.GetContainerName()); n > 253 {
			t.Fatalf("a container's name has %d bytes, want at most 253", n)
		}
	}
}
