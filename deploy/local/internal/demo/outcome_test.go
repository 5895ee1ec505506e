package demo

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"
)

// perIndexJob is a Job with the status that the documentation prints for
// job-backoff-limit-per-index-example.
func perIndexJob() *batchv1.Job {
	failedIndexes := "0,2,4,6,8"
	started := metav1.NewTime(time.Unix(1_000_000, 0))
	var conditions []batchv1.JobCondition
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		conditions = append(conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "FailedIndexes", Message: "Job has failed indexes",
		})
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job-backoff-limit-per-index-example"},
		Status: batchv1.JobStatus{
			Conditions: conditions, StartTime: &started, Succeeded: 5, Failed: 10,
			CompletedIndexes: "1,3,5,7,9", FailedIndexes: &failedIndexes,
		},
	}
}

// expectationOf finds an example's expectation, without its traits.
func expectationOf(t *testing.T, name string) expectation {
	t.Helper()
	for _, ex := range examplesInOrder() {
		if ex.name == name {
			e := ex.expect
			e.traits = nil
			return e
		}
	}
	t.Fatalf("no example %s", name)
	return expectation{}
}

const perIndexLine = "FailureTarget, Failed (FailedIndexes: Job has failed indexes); succeeded 5; failed 10; " +
	"completedIndexes 1,3,5,7,9; failedIndexes 0,2,4,6,8"

func TestEveryFieldOfTheStatusIsCompared(t *testing.T) {
	t.Parallel()
	want := expectationOf(t, "backoff-per-index")
	one := int32(1)
	cases := map[string]struct {
		change func(*batchv1.Job)
		seen   string // what the line says of the change
	}{
		"as the documentation prints it": {func(*batchv1.Job) {}, perIndexLine},
		"no interim condition": {
			func(job *batchv1.Job) { job.Status.Conditions = job.Status.Conditions[1:] },
			"Failed (FailedIndexes: Job has failed indexes); succeeded 5; failed 10; completedIndexes 1,3,5,7,9; failedIndexes 0,2,4,6,8",
		},
		"another message": {
			func(job *batchv1.Job) { job.Status.Conditions[1].Message = "so" },
			"FailureTarget (FailedIndexes: Job has failed indexes), Failed (FailedIndexes: so); succeeded 5; failed 10; " +
				"completedIndexes 1,3,5,7,9; failedIndexes 0,2,4,6,8",
		},
		"a condition that does not hold": {
			func(job *batchv1.Job) { job.Status.Conditions[1].Status = corev1.ConditionFalse },
			"FailureTarget, not Failed (FailedIndexes: Job has failed indexes); succeeded 5; failed 10; " +
				"completedIndexes 1,3,5,7,9; failedIndexes 0,2,4,6,8; a startTime",
		},
		"other counts": {
			func(job *batchv1.Job) { job.Status.Succeeded, job.Status.Failed = 4, 9 },
			"FailureTarget, Failed (FailedIndexes: Job has failed indexes); succeeded 4; failed 9; " +
				"completedIndexes 1,3,5,7,9; failedIndexes 0,2,4,6,8",
		},
		"other indexes": {
			func(job *batchv1.Job) { job.Status.CompletedIndexes, job.Status.FailedIndexes = "1-9", nil },
			"FailureTarget, Failed (FailedIndexes: Job has failed indexes); succeeded 5; failed 10; completedIndexes 1-9",
		},
		"loose ends": {
			func(job *batchv1.Job) {
				job.Status.Active, job.Status.Ready, job.Status.Terminating = 1, &one, &one
				job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"a"}}
				job.Status.CompletionTime, job.Status.StartTime = job.Status.StartTime, nil
			},
			perIndexLine + "; active 1; ready 1; terminating 1; uncounted pods 1; a completionTime; no startTime",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := perIndexJob()
			tc.change(job)
			expected, seen := compare(want, outcomeOf(job), evidence{})
			if diff := cmp.Diff(tc.seen, seen); diff != "" {
				t.Errorf("seen (-want +got):\n%s", diff)
			}
			if good := (result{expected: expected, seen: seen}).good(); good != (tc.seen == perIndexLine) {
				t.Errorf("it is taken for good: %t", good)
			}
		})
	}
}

func TestSuspensionAndAbsenceAreToldApart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		job  *batchv1.Job
		want string
	}{
		"gone":        {nil, "gone"},
		"not touched": {&batchv1.Job{}, "no condition; succeeded 0; failed 0"},
		"not complete, but with a time of completion": {
			&batchv1.Job{Status: batchv1.JobStatus{CompletionTime: &metav1.Time{}}}, "no condition; succeeded 0; failed 0; a completionTime",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, outcomeOf(tc.job).String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessagesThatDifferFromRunToRun(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		pattern, text string
		want          bool
	}{
		"the same text":           {"a b", "a b", true},
		"another text":            {"a b", "a c", false},
		"a pod's random name":     {"pod default/x-* failed", "pod default/x-abcde failed", true},
		"no name":                 {"pod default/x-* failed", "pod default/x- failed", false},
		"another beginning":       {"pod default/x-* failed", "pod default/y-abcde failed", false},
		"another end":             {"pod default/x-* failed", "pod default/x-abcde ended", false},
		"more than a name":        {"pod default/x-* failed", "pod default/x-abcde twice failed", false},
		"shorter than its margin": {"aa*aa", "aaa", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := matchesStar(tc.pattern, tc.text); got != tc.want {
				t.Errorf("%q matches %q: %t", tc.text, tc.pattern, got)
			}
		})
	}
}
