package conformance

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
)

func TestAJobIsRestlessWithTheWrongNumberOfPods(t *testing.T) {
	started := batchv1.JobStatus{StartTime: &metav1.Time{}}
	with := func(status batchv1.JobStatus, changes ...change) *batchv1.Job {
		return &batchv1.Job{Spec: newSpec(changes...), Status: status}
	}
	met := started
	met.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}}
	stopped := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}}
	cases := map[string]struct {
		job           *batchv1.Job
		alive, ending int
		want          bool
	}{
		"nobody has seen it":                       {with(batchv1.JobStatus{}, indexed(2)), 0, 0, true},
		"another controller's, which does nothing": {with(batchv1.JobStatus{}, indexed(2), managedBy("example.com/x")), 0, 0, false},
		"pods are missing":                         {with(started, indexed(3)), 2, 0, true},
		"one that ends is waited for":              {with(started, indexed(3), replaceFailed), 2, 1, false},
		"one that ends is replaced":                {with(started, indexed(3)), 2, 1, true},
		"all are there":                            {with(started, indexed(3)), 3, 0, false},
		"too many after scaling down":              {with(started, indexed(3), parallelism(1)), 3, 0, true},
		"indexes may have failed":                  {with(started, indexed(3), perIndex(0)), 2, 0, false},
		"about to complete":                        {with(met, indexed(3)), 0, 0, false},
		"a work queue that drains":                 {with(batchv1.JobStatus{StartTime: &metav1.Time{}, Succeeded: 1}, parallelism(3)), 1, 0, false},
		"a work queue that starts":                 {with(started, parallelism(3)), 1, 0, true},
		"suspended with pods":                      {with(stopped, suspended, indexed(2)), 1, 0, true},
		"suspended":                                {with(stopped, suspended, indexed(2)), 0, 1, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.job.Spec.Parallelism == nil {
				tc.job.Spec.Parallelism = ptr[int32](1)
			}
			if got := restless(tc.job, tc.alive, tc.ending); got != tc.want {
				t.Errorf("restless = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestFailuresOfAJobThatSucceedsInRestarts(t *testing.T) {
	met := `condition 1: SuccessCriteriaMet=True SuccessPolicy "x"`
	counted := []string{"active=0 ready=0 terminating=0 succeeded=1 failed=1", `completedIndexes="1" failedIndexes=0`}
	hidden := []string{"active=0 ready=0 terminating=0 succeeded=1 failed=?", `completedIndexes="1" failedIndexes=?`}
	if diff := cmp.Diff(append(hidden, met), withoutFailures(append(slices.Clone(counted), met))); diff != "" {
		t.Errorf("a Job that succeeds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(counted, withoutFailures(slices.Clone(counted))); diff != "" {
		t.Errorf("any other Job (-want +got):\n%s", diff)
	}
}

func TestWhatIsAMatterOfChanceIsNotCompared(t *testing.T) {
	v := view{
		lines:  []string{"job: absent", "pod Failed gone: 1", "pod Running tracked: 1", "pod Succeeded: 1", "pods created: 3"},
		events: []string{`event: Normal Completed "Job completed"`, `event: Normal SuccessfulCreate "Created pod: <pod>"`},
	}
	all := append(append([]string{}, v.lines...), v.events...)
	cases := map[string]struct {
		r    run
		told int
		want []string
	}{
		"nothing is":                         {run{c: &Case{}}, 3, all},
		"events that the recorder may drop":  {run{c: &Case{}}, maxEvents, v.lines},
		"events that died with a controller": {run{c: &Case{Restarts: true}}, 3, v.lines},
		"what happened to a Job that goes":   {run{c: &Case{}, loose: true}, 3, []string{"job: absent", "pod Running tracked: 1", "pod Succeeded: 1"}},
		"pods that became orphans meanwhile": {run{c: &Case{}, loose: true, orphaning: true}, 3, []string{"job: absent", "pod Running tracked: 1"}},
		"that it finished before it went":    {run{c: &Case{}, deleting: true}, 3, append(append([]string{}, v.lines...), v.events[1])},
		"events after the pods are orphans":  {run{c: &Case{}, orphaning: true}, 3, v.lines},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			told := v
			told.told = tc.told
			builtin, ours := tc.r.comparable([2]view{told, v})
			if diff := cmp.Diff(tc.want, builtin); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(builtin, ours); diff != "" {
				t.Errorf("the two sides are not treated alike:\n%s", diff)
			}
		})
	}
}
