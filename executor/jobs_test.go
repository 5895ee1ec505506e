package executor

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/tracker"
)

// The API server lets podReplacementPolicy be changed while a Job runs.
func TestAChangedReplacementPolicyIsFollowed(t *testing.T) {
	s := tracker.New(testKey, limit.NewPool(limit.Config{Total: 1, PerJob: 1}))
	versions := []struct {
		policy       batchv1.PodReplacementPolicy
		wantFailures int
	}{{batchv1.Failed, 0}, {batchv1.TerminatingOrFailed, 1}}
	for i, v := range versions {
		s.Observe(testJob(func(j *batchv1.Job) {
			j.ResourceVersion, j.Generation = string(rune('1'+i)), int64(i)
			j.Spec.PodReplacementPolicy = &v.policy
		}), tracker.Watch)
		s.ObservePod(cachedPod(2, func(p *corev1.Pod) {
			now := metav1.Now()
			p.ResourceVersion, p.DeletionTimestamp = string(rune('1'+i)), &now
		}), tracker.Watch)
		view := s.View(tracker.ViewOptions{})
		if got := len(view.Retry.GetRecentFailures()); got != v.wantFailures {
			t.Errorf("with %s a pod that is being deleted makes %d failures, want %d", v.policy, got, v.wantFailures)
		}
	}
}

// The API server lets completions of an Indexed Job be changed together with
// parallelism. Only failed pods with an index below completions delay a retry.
func TestChangedCompletionsAreFollowed(t *testing.T) {
	s := tracker.New(testKey, limit.NewPool(limit.Config{Total: 1, PerJob: 1}))
	mode := batchv1.IndexedCompletion
	s.ObservePod(cachedPod(2, failedPhase, func(p *corev1.Pod) {
		p.ResourceVersion, p.Annotations = "1", map[string]string{batchv1.JobCompletionIndexAnnotation: "3"}
	}), tracker.Watch)
	for i, completions := range []int32{3, 4} {
		s.Observe(testJob(func(j *batchv1.Job) {
			j.ResourceVersion, j.Generation = string(rune('1'+i)), int64(i)
			j.Spec.CompletionMode, j.Spec.Completions = &mode, &completions
		}), tracker.Watch)
		view := s.View(tracker.ViewOptions{})
		if got := len(view.Retry.GetRecentFailures()); got != i {
			t.Errorf("with %d completions the failure of index 3 makes %d failures, want %d", completions, got, i)
		}
	}
}

// If a response shows a version before the watch does, the executor replaces its copy by
// the watch's, which the informer keeps in any case.
func TestOneCopyOfAJobIsKept(t *testing.T) {
	s := tracker.New(testKey, limit.NewPool(limit.Config{Total: 1, PerJob: 1}))
	version := func(rv string) *batchv1.Job {
		return testJob(func(j *batchv1.Job) { j.ResourceVersion = rv })
	}
	s.Observe(version("4"), tracker.Watch)
	answer, watched, older := version("5"), version("5"), version("4")
	for _, v := range []struct {
		job, want *batchv1.Job
		source    tracker.Source
	}{
		{job: answer, want: answer, source: tracker.Written},
		{job: watched, want: watched, source: tracker.Watch},
		{job: older, want: watched, source: tracker.Watch},
		{job: version("5"), want: watched, source: tracker.Written},
		{job: version("5"), want: watched, source: tracker.Response},
	} {
		if s.Observe(v.job, v.source); s.Current() != v.want {
			t.Errorf("after version %s from %d another copy is kept than was wanted", v.job.ResourceVersion, v.source)
		}
	}
}
