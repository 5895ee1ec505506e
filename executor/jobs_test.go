package executor

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/tracker"
)

// The API server lets podReplacementPolicy be changed while a Job runs.
func TestAChangedReplacementPolicyIsFollowed(t *testing.T) {
	s := &jobState{uid: testUID(1), pods: tracker.New()}
	versions := []struct {
		policy       batchv1.PodReplacementPolicy
		wantFailures int
	}{{batchv1.Failed, 0}, {batchv1.TerminatingOrFailed, 1}}
	for i, v := range versions {
		s.observe(testJob(func(j *batchv1.Job) {
			j.ResourceVersion, j.Generation = string(rune('1'+i)), int64(i)
			j.Spec.PodReplacementPolicy = &v.policy
		}), jobWatched)
		s.pods.Observe(leanPod(2, func(p *corev1.Pod) {
			now := metav1.Now()
			p.ResourceVersion, p.DeletionTimestamp = string(rune('1'+i)), &now
		}), tracker.Watch)
		view, err := s.pods.View(tracker.Question{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(view.Retry.GetRecentFailures()); got != v.wantFailures {
			t.Errorf("with %s a pod that is being deleted makes %d failures, want %d", v.policy, got, v.wantFailures)
		}
	}
}

// The API server lets completions of an Indexed Job be changed together with
// parallelism. A pod beyond them delays no retry, one within does.
func TestChangedCompletionsAreFollowed(t *testing.T) {
	s := &jobState{uid: testUID(1), pods: tracker.New()}
	mode := batchv1.IndexedCompletion
	s.pods.Observe(leanPod(2, failedPhase, func(p *corev1.Pod) {
		p.ResourceVersion, p.Annotations = "1", map[string]string{batchv1.JobCompletionIndexAnnotation: "3"}
	}), tracker.Watch)
	for i, completions := range []int32{3, 4} {
		s.observe(testJob(func(j *batchv1.Job) {
			j.ResourceVersion, j.Generation = string(rune('1'+i)), int64(i)
			j.Spec.CompletionMode, j.Spec.Completions = &mode, &completions
		}), jobWatched)
		view, err := s.pods.View(tracker.Question{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(view.Retry.GetRecentFailures()); got != i {
			t.Errorf("with %d completions the failure of index 3 makes %d failures, want %d", completions, got, i)
		}
	}
}

// Of a version that an answer has shown before the watch, only the watch's copy is
// kept: the informer keeps that one in any case.
func TestOneCopyOfAJobIsKept(t *testing.T) {
	s := &jobState{uid: testUID(1), pods: tracker.New()}
	version := func(rv string) *batchv1.Job {
		return testJob(func(j *batchv1.Job) { j.ResourceVersion = rv })
	}
	s.observe(version("4"), jobWatched)
	answer, watched, older := version("5"), version("5"), version("4")
	for _, v := range []struct {
		job, want *batchv1.Job
		source    jobSource
	}{
		{answer, answer, jobWritten},
		{watched, watched, jobWatched},
		{older, watched, jobWatched},
		{version("5"), watched, jobWritten},
		{version("5"), watched, jobRead},
	} {
		if got := s.observe(v.job, v.source).job; got != v.want || s.current() != v.want {
			t.Errorf("after version %s from %d another copy is kept than was wanted", v.job.ResourceVersion, v.source)
		}
	}
}
