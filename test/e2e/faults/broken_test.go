package faults

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// jobAt is a version of a Job.
func jobAt(rv int, changes ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "j", ResourceVersion: strconv.Itoa(rv)}}
	for _, change := range changes {
		change(j)
	}
	return j
}

// podAtVersion is a version of a pod of that Job.
func podAtVersion(rv int, phase corev1.PodPhase, finalizers ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID: "p", Name: "p", ResourceVersion: strconv.Itoa(rv), Finalizers: finalizers,
			OwnerReferences: []metav1.OwnerReference{{UID: "j", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func recorded(lists batchv1.UncountedTerminatedPods) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Status.UncountedTerminatedPods = &lists }
}

func declared(types ...batchv1.JobConditionType) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		for _, c := range types {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue})
		}
	}
}

func succeededOne(j *batchv1.Job) { j.Status.Succeeded = 1 }

// The checks of histories must find what they are made for.
func TestBrokenHistoriesAreNoticed(t *testing.T) {
	t.Parallel()
	success := recorded(batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"p"}})
	failure := recorded(batchv1.UncountedTerminatedPods{Failed: []types.UID{"p"}})
	both := recorded(batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"p"}, Failed: []types.UID{"p"}})
	moreReady := func(j *batchv1.Job) { j.Status.Ready = new(int32(1)) }
	holding := podAtVersion(5, corev1.PodSucceeded, batchv1.JobTrackingFinalizer)
	cases := map[string]struct {
		jobs []*batchv1.Job
		pod  []*corev1.Pod
		gone uint64
		want string
	}{
		"a counter falls":               {jobs: []*batchv1.Job{jobAt(2, success), jobAt(10, succeededOne), jobAt(11)}, want: "succeeded fell"},
		"more ready than active":        {jobs: []*batchv1.Job{jobAt(1, moreReady)}, want: "ready than active"},
		"counted without record":        {jobs: []*batchv1.Job{jobAt(1), jobAt(2, succeededOne)}, want: "grew by 1, and 0"},
		"recorded in both lists":        {jobs: []*batchv1.Job{jobAt(1, both)}, want: "recorded twice"},
		"changes its list":              {jobs: []*batchv1.Job{jobAt(1, success), jobAt(2, failure)}, want: "recorded twice"},
		"recorded after it was counted": {jobs: []*batchv1.Job{jobAt(1, success), jobAt(2, succeededOne), jobAt(3, succeededOne, success)}, want: "recorded again"},
		"counted with its finalizer":    {jobs: []*batchv1.Job{jobAt(6, success), jobAt(7, succeededOne)}, pod: []*corev1.Pod{holding}, want: "counted and holds"},
		"released without record":       {jobs: []*batchv1.Job{jobAt(1)}, pod: []*corev1.Pod{holding, podAtVersion(6, corev1.PodSucceeded)}, want: "released before"},
		"gone without record":           {jobs: []*batchv1.Job{jobAt(1)}, pod: []*corev1.Pod{holding}, gone: 6, want: "released before"},
		"a condition goes away":         {jobs: []*batchv1.Job{jobAt(1, declared(batchv1.JobFailureTarget)), jobAt(2)}, want: "went away"},
		"no interim condition":          {jobs: []*batchv1.Job{jobAt(1), jobAt(2, declared(batchv1.JobFailed, batchv1.JobFailureTarget))}, want: "without FailureTarget"},
		"finished with a holder":        {jobs: []*batchv1.Job{jobAt(6, declared(batchv1.JobComplete))}, pod: []*corev1.Pod{holding}, want: "finished while"},
		"finished with a runner":        {jobs: []*batchv1.Job{jobAt(6, declared(batchv1.JobComplete))}, pod: []*corev1.Pod{podAtVersion(5, corev1.PodRunning)}, want: "finished while"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []*podLife
			if tc.pod != nil {
				pods = []*podLife{{life: life[*corev1.Pod]{versions: tc.pod, gone: tc.gone}}}
			}
			found := brokenInJob(&jobLife{versions: tc.jobs}, pods)
			if !slices.ContainsFunc(found, func(problem string) bool { return strings.Contains(problem, tc.want) }) {
				t.Errorf("want a problem that says %q; found %q", tc.want, found)
			}
		})
	}
}
