package e2e

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/cluster"
)

// kubernetes/kubernetes#52696: the finished pods of a Job with many tasks stay until the Job ends, thousands of them. Here
// the last three stay, and one that failed. The executor is killed in the middle. No pod is lost, and none counts twice.
func TestARunningJobKeepsFewFinishedPods(t *testing.T) {
	namespace := newNamespace(t)
	const tasks, parallel, kept = 60, 4, 3
	job := createJobWith(t, namespace, "many", "{keepFinishedPods: {succeeded: 3, failed: 1}}", batchv1.JobSpec{
		Completions: new(int32(tasks)), Parallelism: new(int32(parallel)), CompletionMode: new(batchv1.IndexedCompletion),
		BackoffLimitPerIndex: new(int32(0)), MaxFailedIndexes: new(int32(tasks)),
		// Every sixth task fails, and the last one takes longer than the others.
		Template: shell("test $JOB_COMPLETION_INDEX != 59 || sleep 8; sleep 0.5; test $((JOB_COMPLETION_INDEX % 6)) != 0", corev1.RestartPolicyNever),
	})
	waitJob(t, namespace, "many", "a third is counted", func(job *batchv1.Job) bool { return job.Status.Succeeded >= tasks/3 })
	killAndStart(t, cluster.Executor)
	waitJob(t, namespace, "many", "only the last task is left", func(job *batchv1.Job) bool { return job.Status.Succeeded+job.Status.Failed == tasks-1 })
	eventually(t, "the older pods are gone, and the last ones stay", func() (bool, string) {
		left := map[corev1.PodPhase]int{}
		for _, pod := range jobPods(t, job) {
			left[pod.Status.Phase]++
		}
		return left[corev1.PodSucceeded] == kept && left[corev1.PodFailed] == 1, fmt.Sprint(left)
	})
	done := waitFinished(t, namespace, "many")
	if done.Status.Succeeded != tasks*5/6 || done.Status.Failed != tasks/6 {
		t.Errorf("of %d tasks every sixth one fails: %s", tasks, describe(done))
	}
}
