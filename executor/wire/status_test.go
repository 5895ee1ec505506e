package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestIndexSetsAreWrittenAsKubernetesWritesThem(t *testing.T) {
	cases := map[string]struct {
		in   [][2]int32
		want string
	}{
		"nothing":                    {nil, ""},
		"one":                        {[][2]int32{{3, 3}}, "3"},
		"two neighbours":             {[][2]int32{{1, 2}}, "1,2"},
		"three from 0":               {[][2]int32{{0, 2}}, "0-2"},
		"runs and singles":           {[][2]int32{{0, 0}, {2, 3}, {5, 9}, {11, 11}}, "0,2,3,5-9,11"},
		"the highest index there is": {[][2]int32{{2147483646, 2147483646}}, "2147483646"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := &jobpolicyv1.IndexSet{}
			for _, r := range tc.in {
				set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: r[0], Last: r[1]})
			}
			if got := FormatIndexes(set); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			back, err := ParseIndexes(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(set, back, protocmp.Transform()); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMalformedIndexListsAreRefused(t *testing.T) {
	for _, s := range []string{"a", "1,", "3-1", "2,1", "1-3,3", "-1", "1-", "99999999999"} {
		if set, err := ParseIndexes(s); err == nil {
			t.Errorf("%q is read as %v", s, set)
		}
	}
}

func TestStatusesSurviveTheRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawStatus(t)
		message, err := JobStatus(&in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := APIStatus(message)
		if err != nil {
			t.Fatal(err)
		}
		keepUndecided(&out, &in)
		if !apiequality.Semantic.DeepEqual(in, out) {
			t.Errorf("(-in +out):\n%s", cmp.Diff(in, out))
		}
	})
}

func uidOf(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012x", n)) }

func drawStatus(t *rapid.T) batchv1.JobStatus {
	number := rapid.Int32Range(0, 1000)
	second := func(label string) metav1.Time {
		return metav1.NewTime(time.Unix(rapid.Int64Range(1, 1<<32).Draw(t, label), 0))
	}
	s := batchv1.JobStatus{
		Active: number.Draw(t, "active"), Succeeded: number.Draw(t, "succeeded"), Failed: number.Draw(t, "failed"),
		CompletedIndexes:        rapid.SampledFrom([]string{"", "0", "1,2", "0-5,7"}).Draw(t, "completed"),
		UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
	}
	if rapid.Bool().Draw(t, "optional fields") {
		ready, terminating, failed := number.Draw(t, "ready"), number.Draw(t, "terminating"), ""
		start, end := second("start"), second("end")
		s.Ready, s.Terminating, s.FailedIndexes, s.StartTime, s.CompletionTime = &ready, &terminating, &failed, &start, &end
	}
	for n := range rapid.IntRange(0, 3).Draw(t, "uncounted") {
		s.UncountedTerminatedPods.Failed = append(s.UncountedTerminatedPods.Failed, uidOf(n))
		s.UncountedTerminatedPods.Succeeded = append(s.UncountedTerminatedPods.Succeeded, uidOf(n+10))
	}
	kinds := []batchv1.JobConditionType{batchv1.JobSuspended, batchv1.JobFailureTarget, "example.com/Other", "example.com/Another"}
	for _, kind := range rapid.Permutation(kinds).Draw(t, "types")[:rapid.IntRange(0, len(kinds)).Draw(t, "conditions")] {
		s.Conditions = append(s.Conditions, batchv1.JobCondition{
			Type:   kind,
			Status: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}).Draw(t, "status"),
			Reason: "Because", Message: "of that", LastProbeTime: second("probe"), LastTransitionTime: second("transition"),
		})
	}
	return s
}

func TestDecidedTimesAreCutToSeconds(t *testing.T) {
	at := time.Date(2026, 5, 6, 7, 8, 9, 999, time.UTC)
	got := APITime(timestamppb.New(at))
	if !got.Time.Equal(at.Truncate(time.Second)) {
		t.Errorf("got %v", got)
	}
}

// The API server takes any text as an uncounted UID. None of these can be a pod's.
func TestUncountedUIDsThatNoPodCanHaveAreLeftOut(t *testing.T) {
	const real = types.UID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")
	in := &batchv1.JobStatus{UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{
		Succeeded: []types.UID{"x"}, Failed: []types.UID{types.UID(strings.ToUpper(string(real))), real},
	}}
	got, err := JobStatus(in)
	if err != nil {
		t.Fatal(err)
	}
	want := &jobpolicyv1.UncountedTerminatedPods{Failed: [][]byte{{0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x78, 0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0}}}
	if diff := cmp.Diff(want, got.GetUncounted(), protocmp.Transform()); diff != "" {
		t.Errorf("uncounted (-want +got):\n%s", diff)
	}
}

func TestSpecsAreConvertedInFull(t *testing.T) {
	ptr := func(n int32) *int32 { return &n }
	seconds, yes, mode, replace := int64(60), true, batchv1.IndexedCompletion, batchv1.Failed
	indexes, container := "0-2", "main"
	now := metav1.Now()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now},
		Spec: batchv1.JobSpec{
			Parallelism: ptr(3), Completions: ptr(4), BackoffLimit: ptr(5), BackoffLimitPerIndex: ptr(6), MaxFailedIndexes: ptr(7),
			ActiveDeadlineSeconds: &seconds, Suspend: &yes, CompletionMode: &mode, PodReplacementPolicy: &replace, TTLSecondsAfterFinished: ptr(8),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure}},
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
				{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
					ContainerName: &container, Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: []int32{1, 2},
				}},
				{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
					{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
				}},
			}},
			SuccessPolicy: &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: &indexes, SucceededCount: ptr(2)}}},
		},
	}
	want := &jobpolicyv1.JobSpec{
		CompletionMode: jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED,
		Parallelism:    3, Completions: ptr(4), BackoffLimit: 5, BackoffLimitPerIndex: ptr(6), MaxFailedIndexes: ptr(7),
		ActiveDeadlineSeconds: &seconds, Suspend: true, TtlSecondsAfterFinished: ptr(8), Deleting: true,
		RestartPolicy:        jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE,
		PodReplacementPolicy: jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_FAILED,
		PodFailurePolicy: &jobpolicyv1.PodFailurePolicy{Rules: []*jobpolicyv1.PodFailurePolicyRule{
			{
				Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB,
				OnExitCodes: &jobpolicyv1.ExitCodesRequirement{
					ContainerName: &container, Operator: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_NOT_IN, Values: []int32{1, 2},
				},
			},
			{
				Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE,
				OnPodConditions: []*jobpolicyv1.PodConditionPattern{
					{Type: "DisruptionTarget", Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE},
				},
			},
		}},
		SuccessPolicy: &jobpolicyv1.SuccessPolicy{Rules: []*jobpolicyv1.SuccessPolicyRule{{
			SucceededIndexes: &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: 0, Last: 2}}}, SucceededCount: ptr(2),
		}}},
	}
	got, err := JobSpec(job)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
