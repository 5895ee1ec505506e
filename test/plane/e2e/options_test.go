package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/executor/wire"
)

// An optionCase is a Job that somebody wanted, with what was asked for. It is disturbed in its middle.
type optionCase struct {
	options string
	spec    batchv1.JobSpec
	check   func(t *testing.T, job *batchv1.Job, pods []corev1.Pod)
}

// optionCases are what people have asked for, by name.
func optionCases() map[string]optionCase {
	nowhere := shell("true", corev1.RestartPolicyNever)
	nowhere.Spec.NodeSelector = map[string]string{"example.com/gpu": "none-has-it"}
	return map[string]optionCase{
		// kubernetes/kubernetes#114651: a fixed delay that fits what the pods wait for.
		"migrate": {
			options: "{retryDelay: {initialSeconds: 4, factor: 1}}",
			spec:    batchv1.JobSpec{BackoffLimit: new(int32(2)), Template: shell("exit 1", corev1.RestartPolicyNever)},
			check:   checkEvenDelays,
		},
		// kubernetes-sigs/jobset#1186: what gets no node within a time is to fail.
		"train": {
			options: "{startDeadlineSeconds: 8}", spec: batchv1.JobSpec{Template: nowhere},
			check: checkNeverStarted,
		},
		// The same deadline, for a Job that starts: it may run for longer.
		"report": {
			options: "{startDeadlineSeconds: 5}", spec: batchv1.JobSpec{Template: shell("sleep 9", corev1.RestartPolicyNever)},
			check: func(t *testing.T, job *batchv1.Job, _ []corev1.Pod) {
				if !isComplete(job) || conditionReason(job, wire.Started) != "PodRan" {
					t.Errorf("a Job that started in time: %s", describe(job))
				}
			},
		},
		// NVIDIA/nodewright#402: a try that hangs fails, and is repeated.
		"upgrade": {
			options: "{tryDeadlineSeconds: 3}",
			spec:    batchv1.JobSpec{BackoffLimit: new(int32(1)), Template: shell("sleep 600", corev1.RestartPolicyNever)},
			check:   checkEachTryEnds,
		},
	}
}

// A restart in their middle changes nothing: everything that these options need is in the cluster.
func TestOptionsSurviveARestart(t *testing.T) {
	w, cases := newCronWorld(t, client), optionCases()
	namespace := w.namespace
	for name, tc := range cases {
		createJobWith(t, namespace, name, tc.options, tc.spec)
	}
	nightly := cron("nightly", "0 3 * * *", "true")
	nightly.Annotations[wire.Policy] = "{cronJob: {staggerSeconds: 3600, publishNextScheduleTime: true}}"
	w.create(t, nightly)
	offset := w.waitPublished(t, "nightly")
	waitJob(t, namespace, "migrate", "a pod failed", func(job *batchv1.Job) bool { return job.Status.Failed >= 1 })
	killAndStart(t, cluster.Executor)
	w.patch(t, "nightly", fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}}`, wire.NextScheduleTime))
	if again := w.waitPublished(t, "nightly"); again != offset {
		t.Errorf("the staggered run is due at %s, and after the restart at %s", offset, again)
	}
	for name, tc := range cases {
		job := waitFinished(t, namespace, name)
		tc.check(t, job, jobPods(t, job))
	}
}

// waitPublished waits until a CronJob says when it runs next, and returns that.
func (w *cronWorld) waitPublished(t *testing.T, name string) string {
	t.Helper()
	return w.waitCron(t, name, "the next run is published", func(c *batchv1.CronJob) bool {
		return c.Annotations[wire.NextScheduleTime] != ""
	}).Annotations[wire.NextScheduleTime]
}

// checkEvenDelays: four seconds between the tries, and not the default of ten and more. The API keeps times in
// whole seconds, so up to one of them may seem to be missing.
func checkEvenDelays(t *testing.T, job *batchv1.Job, pods []corev1.Pod) {
	t.Helper()
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if len(pods) != 3 || conditionReason(job, batchv1.JobFailed) != batchv1.JobReasonBackoffLimitExceeded {
		t.Fatalf("%d pods, want 3; %s", len(pods), describe(job))
	}
	for i, pod := range pods[1:] {
		finished := pods[i].Status.ContainerStatuses[0].State.Terminated.FinishedAt
		if waited := pod.CreationTimestamp.Sub(finished.Time); waited < 3*time.Second || waited >= 10*time.Second {
			t.Errorf("try %d began %v after the one before had failed, want 4s", i+2, waited)
		}
	}
}

func checkNeverStarted(t *testing.T, job *batchv1.Job, _ []corev1.Pod) {
	t.Helper()
	failed := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobFailureTarget })
	if conditionReason(job, batchv1.JobFailed) != "StartDeadlineExceeded" || failed < 0 {
		t.Fatalf("a Job that gets no node: %s", describe(job))
	}
	if waited := job.Status.Conditions[failed].LastTransitionTime.Sub(job.Status.StartTime.Time); waited < 8*time.Second {
		t.Errorf("it failed after %v, want 8s", waited)
	}
	waitEvents(t, job, "StartDeadlineExceeded")
}

func checkEachTryEnds(t *testing.T, job *batchv1.Job, pods []corev1.Pod) {
	t.Helper()
	if len(pods) != 2 || job.Status.Failed != 2 || conditionReason(job, batchv1.JobFailed) != batchv1.JobReasonBackoffLimitExceeded {
		t.Errorf("%d pods, want 2 that failed; %s", len(pods), describe(job))
	}
	for _, pod := range pods {
		if limit := pod.Spec.ActiveDeadlineSeconds; limit == nil || *limit != 3 || pod.Status.Reason != "DeadlineExceeded" {
			t.Errorf("pod %s may be active for %v seconds, and ended with the reason %q", pod.Name, limit, pod.Status.Reason)
		}
	}
}
