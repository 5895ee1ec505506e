package faults

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A subject is a Job of the chaos test: how its pods end, what users do to it, and how
// it must end.
type subject struct {
	name string
	spec batchv1.JobSpec
	// ending draws how a running pod ends; ends is false if it keeps running.
	ending func(*chaos, *corev1.Pod) (status corev1.PodStatus, ends bool)
	// drained: users delete its pods now and then.
	drained bool
	// resized: users change how many pods it may have at once.
	resized bool
	changes []userChange

	want          string // Type and reason of the terminal condition; empty for any.
	failedIndexes string

	// job is the Job as last seen; nil once it is deleted for good.
	job *batchv1.Job
}

// A userChange happens after this many hundredths of the chaos.
type userChange struct {
	at    int
	patch string
	do    func(*chaos, *subject)
}

const complete, limitExceeded = "Complete CompletionsReached", "Failed BackoffLimitExceeded"

func subjects() []*subject {
	queue := withLimit(spec(0, 3), 100)
	queue.Completions = nil
	late := spec(3, 3)
	late.ActiveDeadlineSeconds = new(int64(6))
	enough := withLimit(indexed(30, 4), 100)
	enough.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(12))}}}
	replaced := withLimit(indexed(20, 3), 100)
	replaced.PodReplacementPolicy = new(batchv1.Failed)
	return []*subject{
		{name: "plain", spec: withLimit(spec(40, 5), 100), ending: oftenSucceed, want: complete},
		{name: "indexed", spec: withLimit(indexed(40, 5), 100), ending: oftenSucceed, want: complete},
		{name: "queue", spec: queue, ending: oftenSucceed, want: complete},
		{name: "failing", spec: withLimit(spec(1, 1), 3), ending: alwaysFail, want: limitExceeded},
		{name: "broken", spec: withLimit(indexed(8, 8), 2), ending: alwaysFail, want: limitExceeded},
		{name: "per-index", spec: withPerIndex(indexed(14, 3), 1), ending: oddFail, want: "Failed FailedIndexes", failedIndexes: "1,3,5,7,9,11,13"},
		{name: "ignoring", spec: withPolicy(withLimit(spec(20, 3), 0), batchv1.PodFailurePolicyActionIgnore), ending: oftenDisrupted, want: complete},
		{name: "fail-job", spec: withPolicy(withLimit(spec(8, 3), 100), batchv1.PodFailurePolicyActionFailJob), ending: oftenDisrupted},
		{name: "enough", spec: enough, ending: oftenSucceed, want: "Complete SuccessPolicy"},
		{name: "late", spec: late, ending: runOn, want: "Failed DeadlineExceeded"},
		{name: "replaced", spec: replaced, ending: oftenSucceed, drained: true, want: complete},
		{name: "drained", spec: withLimit(spec(20, 3), 100), ending: oftenSucceed, drained: true, want: complete},
		{name: "paused", spec: withLimit(spec(30, 3), 100), ending: oftenSucceed, want: complete, resized: true, changes: []userChange{
			{at: 10, patch: `{"spec":{"suspend":true}}`},
			{at: 25, patch: `{"spec":{"suspend":false}}`},
			{at: 35, patch: `{"spec":{"suspend":true}}`},
			{at: 40, patch: `{"spec":{"suspend":false}}`},
		}},
		{name: "scaled", spec: withLimit(indexed(40, 2), 100), ending: oftenSucceed, want: complete, resized: true, changes: []userChange{
			{at: 10, patch: `{"spec":{"parallelism":6}}`},
			{at: 20, patch: `{"spec":{"parallelism":1}}`},
			{at: 30, patch: `{"spec":{"parallelism":0}}`},
			{at: 40, patch: `{"spec":{"parallelism":4}}`},
		}},
		{name: "again", spec: withLimit(spec(16, 3), 100), ending: oftenSucceed, want: complete, changes: []userChange{{at: 15, do: recreate}}},
		{name: "orphaned", spec: withLimit(spec(100, 3), 100), ending: oftenSucceed, changes: []userChange{{at: 30, do: orphan}}},
		{name: "discarded", spec: withLimit(indexed(100, 3), 100), ending: oftenSucceed, changes: []userChange{{at: 30, do: discard}}},
	}
}

func oftenSucceed(c *chaos, _ *corev1.Pod) (corev1.PodStatus, bool) {
	if c.chance(80) {
		return endedStatus(corev1.PodSucceeded, ending{}), true
	}
	return endedStatus(corev1.PodFailed, ending{exit: 1}), true
}

func alwaysFail(*chaos, *corev1.Pod) (corev1.PodStatus, bool) {
	return endedStatus(corev1.PodFailed, ending{exit: 1}), true
}

func oddFail(_ *chaos, pod *corev1.Pod) (corev1.PodStatus, bool) {
	if n, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil && n%2 == 1 {
		return endedStatus(corev1.PodFailed, ending{exit: 1}), true
	}
	return endedStatus(corev1.PodSucceeded, ending{}), true
}

func oftenDisrupted(c *chaos, _ *corev1.Pod) (corev1.PodStatus, bool) {
	if c.chance(70) {
		return endedStatus(corev1.PodSucceeded, ending{}), true
	}
	return endedStatus(corev1.PodFailed, ending{exit: 137, condition: corev1.DisruptionTarget}), true
}

func runOn(*chaos, *corev1.Pod) (corev1.PodStatus, bool) { return corev1.PodStatus{}, false }

// withPolicy applies an action to pods that are disrupted.
func withPolicy(s batchv1.JobSpec, action batchv1.PodFailurePolicyAction) batchv1.JobSpec {
	s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          action,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
	return s
}

func recreate(c *chaos, s *subject) {
	c.delete(s.name, metav1.DeletePropagationBackground)
	c.gone(s.job)
	s.job = c.create(s.name, s.spec)
}

func orphan(c *chaos, s *subject) {
	c.delete(s.name, metav1.DeletePropagationOrphan)
	s.job = nil
}

func discard(c *chaos, s *subject) {
	c.delete(s.name, metav1.DeletePropagationForeground)
	s.job = nil
}
