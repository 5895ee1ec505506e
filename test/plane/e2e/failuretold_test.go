package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/test/kit/objects"
)

// Who finds a failed Job wants to know what its pods said, and their pods are gone (kubernetes/kubernetes#107891, #74848). The condition
// tells the last two of three, also what a pod said before both services were killed. The test is the node of the pods.
func TestTheConditionTellsThePodsThatFailedLast(t *testing.T) {
	namespace := newNamespace(t)
	job := createJobWith(t, namespace, "told", "{endCondition: true, endConditionFailures: 2, retryDelay: {delaysSeconds: [1]}}",
		batchv1.JobSpec{BackoffLimit: new(int32(2)), Template: byHand()})
	var failed []string
	for try := range 3 {
		pod := activePod(t, job)
		if pod.Annotations[podcache.KeepTerminationMessageAnnotation] != "true" {
			t.Fatalf("pod %s has annotations %v", pod.Name, pod.Annotations)
		}
		pod.Status = killedBy("Error")
		ended := pod.Status.ContainerStatuses[0].State.Terminated
		ended.ExitCode, ended.Message = int32(try+3), fmt.Sprintf("starting\nno such file: \"/data/%d\" [x]\x1b[1m\n", try)
		objects.UpdateStatus(t, client.CoreV1().Pods(namespace), pod)
		failed = append(failed, pod.Name)
		if try == 1 {
			waitJob(t, namespace, "told", "the failure counts", func(job *batchv1.Job) bool { return job.Status.Failed == 2 })
			killAndStart(t, cluster.Executor)
			killAndStart(t, cluster.Engine)
		}
	}
	waitFinished(t, namespace, "told")
	must.Succeed(t, client.CoreV1().Pods(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "job-name=told"}))
	end := readEnd(t, getJob(t, namespace, "told"))
	var told []string
	for _, f := range end.GetFailures() {
		told = append(told, fmt.Sprintf("%s %s %d %s %s", f.GetPodName(), f.GetContainerName(), f.GetExitCode(), f.GetReason(), f.GetTerminationMessage()))
	}
	want := []string{
		failed[2] + ` main 5 Error no such file: "/data/2" [x] [1m`,
		failed[1] + ` main 4 Error no such file: "/data/1" [x] [1m`,
	}
	if strings.Join(told, "\n") != strings.Join(want, "\n") || end.GetPodName() != failed[2] || end.GetTries() != 3 {
		t.Errorf("the Job ended by %v\nand tells\n%s\nwant\n%s", end, strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	out, err := kubectlJobpolicy(t, namespace, "explain", "job/told", "-o", "json")
	var explained struct {
		End struct {
			Failures []struct{ Pod, TerminationMessage string }
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &explained) != nil || len(explained.End.Failures) != 2 || explained.End.Failures[1].Pod != failed[1] {
		t.Errorf("explain says %s (%v)", out, err)
	}
	if out, err := kubectlJobpolicy(t, namespace, "explain", "job/told"); err != nil || !strings.Contains(out, "exit code 4, Error: no such file: \"/data/1\"") {
		t.Errorf("explain says for people %s (%v)", out, err)
	}
}

// activePod waits for a pod of the Job that has not ended.
func activePod(t *testing.T, job *batchv1.Job) (active *corev1.Pod) {
	t.Helper()
	eventually(t, "an active pod of "+job.Name, func() (bool, string) {
		for _, pod := range jobPods(t, job) {
			if pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil {
				active = &pod
			}
		}
		return active != nil, describe(getJob(t, job.Namespace, job.Name))
	})
	return active
}

// A pod of a Job that does not ask for it is made as ever, and nothing of what it says leaves it.
func TestNobodyElseTellsWhatPodsSay(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := createJobWith(t, namespace, "silent", "{endCondition: true}", batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: byHand()})
	pod := activePod(t, job)
	if _, has := pod.Annotations[podcache.KeepTerminationMessageAnnotation]; has {
		t.Errorf("pod %s has annotations %v", pod.Name, pod.Annotations)
	}
	pod.Status = killedBy("Error")
	pod.Status.ContainerStatuses[0].State.Terminated.Message = "secret"
	objects.UpdateStatus(t, client.CoreV1().Pods(namespace), pod)
	done := waitFinished(t, namespace, "silent")
	if end := readEnd(t, done); len(end.GetFailures()) > 0 || strings.Contains(describe(done), "secret") {
		t.Errorf("the Job ended by %v: %s", end, describe(done))
	}
}

// The API server refuses what makes no sense.
func TestFailuresNeedTheCondition(t *testing.T) {
	t.Parallel()
	servePolicies(t, plane)
	namespace := newNamespace(t)
	for spec, want := range map[string]string{
		"{job: {endConditionFailures: 3}}":                      "needs endCondition to be true",
		"{job: {endConditionFailures: 3, endCondition: false}}": "needs endCondition to be true",
		"{job: {endConditionFailures: 0, endCondition: true}}":  "endConditionFailures",
		"{job: {endConditionFailures: 11, endCondition: true}}": "endConditionFailures",
	} {
		document := "apiVersion: jobpolicy.dev/v1alpha1\nkind: JobPolicy\nmetadata: {name: told}\nspec: " + spec
		if err := dryApply(t, namespace, document); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", spec, err, want)
		}
	}
	if err := dryApply(t, namespace, "apiVersion: jobpolicy.dev/v1alpha1\nkind: JobPolicy\nmetadata: {name: told}\nspec: {job: {endConditionFailures: 10, endCondition: true}}"); err != nil {
		t.Error(err)
	}
}
