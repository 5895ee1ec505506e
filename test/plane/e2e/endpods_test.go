package e2e

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/cluster"
)

// A workflow manager never repeats a step, and must know afterwards what each of its pods did. When one fails, the built-in
// controller deletes the others, with logs and exit codes (kubernetes/kubernetes#107891). Here they are asked to end, and stay.
// The executor is killed while one of them still ends.
func TestPodsOfAFailedJobStayWithTheirLogs(t *testing.T) {
	namespace := newNamespace(t)
	template := shell(`[ $JOB_COMPLETION_INDEX = 0 ] && sleep 3 && exit 3
trap 'echo saving; sleep 4; echo saved; exit 7' TERM
echo step 17 of 40; while :; do sleep 0.2; done`, corev1.RestartPolicyNever)
	template.Spec.TerminationGracePeriodSeconds = new(int64(20))
	job := createJobWith(t, namespace, "workflow", "{whenJobFails: EndPods}", batchv1.JobSpec{
		Completions: new(int32(3)), Parallelism: new(int32(3)), CompletionMode: new(batchv1.IndexedCompletion), BackoffLimit: new(int32(0)), Template: template,
	})
	told := map[string]int64{}
	eventually(t, "two pods are told to end", func() (bool, string) {
		for _, p := range jobPods(t, job) {
			if limit := p.Spec.ActiveDeadlineSeconds; limit != nil {
				told[p.Name] = *limit
			}
		}
		return len(told) == 2, describe(getJob(t, namespace, "workflow"))
	})
	killAndStart(t, cluster.Executor)
	job = waitFinished(t, namespace, "workflow")
	if conditionReason(job, batchv1.JobFailed) != "BackoffLimitExceeded" || job.Status.Failed != 3 || job.Status.Active != 0 {
		t.Errorf("it ended with %s", describe(job))
	}
	pods := jobPods(t, job)
	for _, p := range pods {
		limit, isTold := told[p.Name]
		if !isTold {
			continue
		}
		if p.Status.Phase != corev1.PodFailed || p.Status.Reason != "DeadlineExceeded" || *p.Spec.ActiveDeadlineSeconds != limit || p.DeletionTimestamp != nil || len(p.Finalizers) > 0 {
			t.Errorf("pod %s was told to end within %d s, and is now %v", p.Name, limit, p)
		}
		if exit := p.Status.ContainerStatuses[0].State.Terminated; exit == nil || exit.ExitCode != 7 {
			t.Errorf("the container of pod %s ended with %v, want exit code 7", p.Name, exit)
		}
		checkLog(t, &p, "step 17 of 40", "saving", "saved")
	}
	if len(pods) != 3 {
		t.Errorf("%d pods are left, want 3", len(pods))
	}
}

func checkLog(t *testing.T, pod *corev1.Pod, want ...string) {
	t.Helper()
	log, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("the log of pod %s: %v", pod.Name, err)
	}
	for _, line := range want {
		if !slices.Contains(strings.Split(string(log), "\n"), line) {
			t.Errorf("the log of pod %s is %q, want the line %q", pod.Name, log, line)
		}
	}
}

// With restartPolicy OnFailure, the restarts of a container end the Job, and the built-in controller deletes the pod that did not
// work, with the log that says why (kubernetes/kubernetes#74848).
func TestThePodOfAJobThatRestartsTooOftenStaysWithItsLog(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := createJobWith(t, namespace, "crashes", "{whenJobFails: EndPods}", batchv1.JobSpec{
		BackoffLimit: new(int32(1)), Template: shell("echo the disk is full; exit 5", corev1.RestartPolicyOnFailure),
	})
	job = waitFinished(t, namespace, job.Name)
	pod := onePod(t, job)
	if conditionReason(job, batchv1.JobFailed) != "BackoffLimitExceeded" || job.Status.Failed != 1 || pod.Status.Phase != corev1.PodFailed || pod.Status.Reason != "DeadlineExceeded" {
		t.Errorf("it ended with %s, and its pod is %v", describe(job), pod.Status)
	}
	checkLog(t, pod, "the disk is full")
}

// No node has taken the pods of a Job that has a deadline: none would end them, so they are deleted.
func TestPodsWithoutANodeAreDeletedWhenTheirJobFails(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJobWith(t, namespace, "unscheduled", "{whenJobFails: EndPods}", batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(2)), Template: byHand()})
	job := waitFinished(t, namespace, "unscheduled")
	if pods := jobPods(t, job); conditionReason(job, batchv1.JobFailed) != "DeadlineExceeded" || job.Status.Failed != 1 || len(pods) != 0 {
		t.Errorf("it ended with %s and %d pods", describe(job), len(pods))
	}
}
