package demo

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"
)

func trueConditions(reason string, kinds ...batchv1.JobConditionType) []batchv1.JobCondition {
	var conditions []batchv1.JobCondition
	for _, kind := range kinds {
		conditions = append(conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "so"})
	}
	return conditions
}

func TestEveryFieldOfTheStatusIsSaid(t *testing.T) {
	t.Parallel()
	const indexes = "; succeeded 5; failed 10; completedIndexes 1,3; failedIndexes 0,2"
	const all = "FailureTarget, Failed (FailedIndexes: so)" + indexes
	cases := map[string]struct {
		change func(*batchv1.JobStatus)
		want   string
	}{
		"as it should be":      {func(*batchv1.JobStatus) {}, all},
		"no interim condition": {func(s *batchv1.JobStatus) { s.Conditions = s.Conditions[1:] }, "Failed (FailedIndexes: so)" + indexes},
		"another message": {
			func(s *batchv1.JobStatus) { s.Conditions[1].Message = "thus" },
			"FailureTarget (FailedIndexes: so), Failed (FailedIndexes: thus)" + indexes,
		},
		"a condition that does not hold": {
			func(s *batchv1.JobStatus) { s.Conditions[1].Status = corev1.ConditionFalse },
			"FailureTarget, not Failed (FailedIndexes: so)" + indexes + "; a startTime",
		},
		"nothing":          {func(s *batchv1.JobStatus) { *s = batchv1.JobStatus{} }, "no condition; succeeded 0; failed 0"},
		"complete for now": {func(s *batchv1.JobStatus) { s.CompletionTime = s.StartTime }, all + "; a completionTime"},
		"contradictions": {
			func(s *batchv1.JobStatus) {
				s.Active, s.Ready, s.Terminating, s.StartTime = 1, ptr.To[int32](1), ptr.To[int32](1), nil
				s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"a"}}
			},
			all + "; active 1; ready 1; terminating 1; uncounted pods 1; no startTime",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &batchv1.Job{Status: batchv1.JobStatus{
				Conditions: trueConditions("FailedIndexes", batchv1.JobFailureTarget, batchv1.JobFailed),
				StartTime:  &metav1.Time{}, Succeeded: 5, Failed: 10, CompletedIndexes: "1,3", FailedIndexes: ptr.To("0,2"),
			}}
			tc.change(&job.Status)
			if diff := cmp.Diff(tc.want, strings.Join(statusSentences(job), "; ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheLifeOfAJobIsSaid(t *testing.T) {
	t.Parallel()
	linux := map[string]string{"os": "linux"}
	end := metav1.NewTime(time.Unix(100, 0))
	past := history{
		job: &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: end.Add(4 * time.Second)}},
			Status:     batchv1.JobStatus{CompletionTime: &end, Conditions: trueConditions("r", batchv1.JobComplete)},
		},
		gone:       true,
		highest:    peaks{active: 2, terminating: 3, alive: 4},
		startTimes: []time.Time{time.Unix(1, 0), time.Unix(5, 0)},
		pods: []podPast{
			{index: 0, nodeSelector: linux, memory: "64Mi", created: time.Unix(3, 0), ended: time.Unix(4, 0)},
			{index: 2, stopped: true, nodeSelector: linux, created: time.Unix(9, 0), due: time.Unix(13, 0)},
			{index: noIndex, created: time.Unix(20, 0)},
			{index: 0, restarts: 2, nodeSelector: linux, memory: "0", created: time.Unix(6, 0), ended: time.Unix(8, 0)},
		},
		metrics: map[string]float64{hinderedSeries: 3, stuckSeries: 1.7, refusedSeries: 8},
	}
	want := []string{
		"active at most: 2", "alive at most: 4", "seen terminating: 3", "pods in all: 4", "container runs: 6", "pods by index 2,0,1",
		"stopped pods of indexes 2", "node selectors map[], map[os:linux]", "memory limits , , 0, 64Mi", "seconds before tries 2,1", "seconds from due to the next pod 7",
		"start times: 2", "first pod 2s after the first start", "pods left: 2", "output a\nc\n|b\n", "lines a\nb\nc",
		`jobpolicy_hindered_pods{reason="CreateContainerConfigError"} at most 3`, "jobpolicy_job_without_progress_seconds at most 2",
		`jobpolicy_refused_writes_total{write="create_pod"} at most 8`,
		"before: Complete (r: so)", "deleted 4s after its end",
	}
	if diff := cmp.Diff(want, lifeSentences(past, []string{"b\n", "a\nc\n"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsSaidIsComparedWithWhatIsWanted(t *testing.T) {
	t.Parallel()
	status, life := []string{"Complete", "failed 0"}, []string{"pods left: 3"}
	cases := map[string]struct {
		wants []string
		good  bool
	}{
		"all is said":                      {[]string{"Complete", "failed 0", "pods left: 3"}, true},
		"in a form that matches":           {[]string{"Complete", "failed 0", `some left ~ pods left: [1-9]`}, true},
		"one is not said":                  {[]string{"Complete", "failed 0", "pods left: 2"}, false},
		"the form does not match":          {[]string{"Complete", "failed 0", `some left ~ pods left`}, false},
		"the status says more":             {[]string{"Complete", "pods left: 3"}, false},
		"the status says it once":          {[]string{"Complete", "failed 0", "failed 0"}, false},
		"of the life not all is wanted":    {[]string{"Complete", "failed 0"}, true},
		"a sentence is no pattern":         {[]string{"Comp.ete", "failed 0"}, false},
		"only a part of a sentence is met": {[]string{"Complet", "failed 0"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expected, seen := compare(tc.wants, status, life)
			if good := (result{expected: expected, seen: seen}).good(); good != tc.good {
				t.Errorf("it is taken for good: %t\nexpected %s\nseen %s", good, expected, seen)
			}
		})
	}
}

// Each pattern of the catalog is met by what it is meant for, and not by what is nearly that.
func TestPatternsOfTheCatalog(t *testing.T) {
	t.Parallel()
	items := "item 1\nitem 3\nitem 5\n|item 2\nitem 4\nitem 6\nitem 7\n|item 8\nitem 9\n"
	pi := "3.14159265358979323846"
	cases := map[string]struct{ good, bad []string }{
		"hello":       {[]string{"Hello world!\n"}, []string{"Hello world!\n|Hello world!\n", ""}},
		"pi":          {[]string{pi + strings.Repeat("0", 1979) + "\n"}, []string{pi, strings.Repeat("1", 2001), ""}},
		"work-queue":  {[]string{items, "|" + items, items + "mkdir: no\n"}, []string{items + "|item 5\n", strings.ReplaceAll(items, "item 5\n", ""), "item 0\n|" + items}},
		"indexed":     {[]string{"My index is 1\n|My index is 0\n|My index is 2\n|My index is 4\n|My index is 3\n"}, []string{"My index is 0\n|My index is 1\n|My index is 2\n|My index is 4\n"}},
		"retry-never": {[]string{"a\ncompleted\n|completed|completed|completed"}, []string{"completed|completed|completed|Hello", "completed|completed|completed|completed|completed"}},
		"cronjob": {
			[]string{"Thu Jan  1\nHello from the Kubernetes cluster\n"},
			[]string{"Hello from the Kubernetes cluster\n", "Thu\nHello from the Kubernetes cluster\nHello from the Kubernetes cluster\n", "Thu\nHello from the Kubernetes cluster\n|"},
		},
		"stuck-pods": {
			[]string{"configured\n|configured\n|configured\n"},
			[]string{"configured\n|configured\n|\n", "configured\n|configured\n", strings.Repeat("configured\n|", 3) + "configured\n"},
		},
		"keep-logs": {[]string{"index 1\n|index 0\n"}, []string{"index 1\n", "index 1\n|"}},
		"new": {
			[]string{"template of old\n|template of new\n|template of old\n|template of new\n"},
			[]string{"template of new\n|template of new\n|template of new\n|template of new\n"},
		},
	}
	for _, ex := range examplesInOrder() {
		for _, want := range ex.wants {
			_, pattern, _ := strings.Cut(want, " ~ ")
			if !strings.HasPrefix(pattern, "output ") && !strings.HasPrefix(pattern, "lines ") {
				continue
			}
			tc, ok := cases[ex.name]
			if !ok {
				t.Errorf("%s: no case", ex.name)
			}
			for good, outputs := range map[bool][]string{true: tc.good, false: tc.bad} {
				for _, output := range outputs {
					expected, seen := compare([]string{want}, nil, lifeSentences(history{}, strings.Split(output, "|")))
					if (expected == seen) != good {
						t.Errorf("%s: %q is taken for good: %t", ex.name, output, !good)
					}
				}
			}
		}
	}
	for sentence, good := range map[string]bool{
		"deleted 5s after its end": true, "deleted 12s after its end": true, "deleted 4s after its end": false,
		"active at most: 2": true, "active at most: 3": false, "alive at most: 3": true, "alive at most: 4": false,
	} {
		kind, _, _ := strings.Cut(sentence, " ")
		met := false
		for _, ex := range examplesInOrder() {
			for _, want := range ex.wants {
				if _, pattern, _ := strings.Cut(want, " ~ "); strings.HasPrefix(pattern, kind+" ") {
					expected, seen := compare([]string{want}, nil, []string{sentence})
					met = met || expected == seen
				}
			}
		}
		if met != good {
			t.Errorf("%q is taken for good: %t", sentence, met)
		}
	}
}
