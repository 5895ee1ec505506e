package e2e

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/kit/objects"
)

// Nobody can pull the image of a Job (actions-runner-controller#4654, nodewright#306). Each pod counts as failed after a while, and
// the Job fails by its backoffLimit. The test is the node of these pods. Both services are killed while a pod
// waits: the time goes on.
func TestPodsWithoutTheirImageCountAsFailed(t *testing.T) {
	namespace := newNamespace(t)
	job := createJobWith(t, namespace, "no-image", "{endCondition: true, neverStarted: [{problem: Image, afterSeconds: 4}]}",
		batchv1.JobSpec{BackoffLimit: new(int32(1)), Template: byHand()})
	cannotPull(t, onePod(t, job))
	killAndStart(t, cluster.Executor)
	killAndStart(t, cluster.Engine)
	eventually(t, "another pod", func() (bool, string) {
		for _, pod := range jobPods(t, job) {
			if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending && len(pod.Status.ContainerStatuses) == 0 {
				cannotPull(t, &pod)
				return true, ""
			}
		}
		return false, describe(getJob(t, namespace, "no-image"))
	})
	eventually(t, "explain says what the Job waits for", func() (bool, string) {
		out, _ := kubectlJobpolicy(t, namespace, "explain", "job/no-image")
		return strings.Contains(out, "(ImagePullBackOff) may take 4s, then it counts as failed"), out
	})
	done := waitFinished(t, namespace, "no-image")
	end := readEnd(t, done)
	if conditionReason(done, batchv1.JobFailed) != batchv1.JobReasonBackoffLimitExceeded || done.Status.Failed != 2 ||
		end.GetClass() != jobpolicyv1.EndClass_END_CLASS_NEVER_STARTED || end.GetReason() != "ImagePullBackOff" ||
		end.GetProblem() != jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE || end.GetTries() != 2 {
		t.Errorf("the Job ended by %v: %s", end, describe(done))
	}
}

// cannotPull reports a pod as its node would that cannot pull its image.
func cannotPull(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	now := metav1.Now()
	pod.Status.StartTime = &now
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"},
	}}}
	objects.UpdateStatus(t, client.CoreV1().Pods(pod.Namespace), pod)
}

// missingConfig is a container that needs a ConfigMap which does not exist.
func missingConfig() corev1.PodTemplateSpec {
	template := shell("true", corev1.RestartPolicyNever)
	template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "no-such-settings"}, Key: "mode",
	}}}}
	return template
}

// A ConfigMap is missing (k/k#122300): the Job says so and fails at once. A pod of which an init container has run
// has got its image and started, and is not meant.
func TestAMissingConfigMapFailsTheJob(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const option = "{endCondition: true, neverStarted: [{problem: Configuration, afterSeconds: 1, action: FailJob}]}"
	started := missingConfig()
	started.Spec.InitContainers = shell("true", corev1.RestartPolicyNever).Spec.Containers
	started.Spec.InitContainers[0].Name = "first"
	other := createJobWith(t, namespace, "started", option, batchv1.JobSpec{Template: started})
	eventually(t, "the init container has run, and the other one waits", func() (bool, string) {
		pods := jobPods(t, other)
		return len(pods) > 0 && len(pods[0].Status.InitContainerStatuses) > 0 && pods[0].Status.InitContainerStatuses[0].State.Terminated != nil &&
			pods[0].Status.ContainerStatuses[0].State.Waiting.Reason == "CreateContainerConfigError", describe(getJob(t, namespace, "started"))
	})
	createJobWith(t, namespace, "no-config", option, batchv1.JobSpec{Template: missingConfig()})
	done := waitFinished(t, namespace, "no-config")
	end := readEnd(t, done)
	if conditionReason(done, batchv1.JobFailed) != "PodNeverStarted" || end.GetClass() != jobpolicyv1.EndClass_END_CLASS_NEVER_STARTED ||
		end.GetProblem() != jobpolicyv1.PodStartProblem_POD_START_PROBLEM_CONFIGURATION || end.GetReason() != "CreateContainerConfigError" {
		t.Errorf("the Job ended by %v: %s", end, describe(done))
	}
	if job := getJob(t, namespace, "started"); job.Status.Active != 1 || job.Status.Failed != 0 {
		t.Errorf("a pod that has started was ended: %s", describe(job))
	}
}

// No node takes the pods of a Job whose indexes fail one by one. With podReplacementPolicy Failed they count when
// the pod garbage collector has ended them, because they have no node.
func TestIndexesThatNoNodeTakesFail(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	template := shell("true", corev1.RestartPolicyNever)
	template.Spec.NodeSelector = map[string]string{"no-such-label": "1"}
	job := createJobWith(t, namespace, "no-node", "{endCondition: true, neverStarted: [{problem: Unschedulable, afterSeconds: 2, action: FailIndex}]}", batchv1.JobSpec{
		CompletionMode: new(batchv1.IndexedCompletion), Completions: new(int32(3)), Parallelism: new(int32(2)), BackoffLimitPerIndex: new(int32(9)),
		PodReplacementPolicy: new(batchv1.Failed), Template: template,
	})
	done := waitFinished(t, namespace, "no-node")
	end := readEnd(t, done)
	if conditionReason(done, batchv1.JobFailed) != batchv1.JobReasonFailedIndexes || *done.Status.FailedIndexes != "0-2" || done.Status.Failed != 3 ||
		end.GetProblem() != jobpolicyv1.PodStartProblem_POD_START_PROBLEM_UNSCHEDULABLE {
		t.Errorf("the Job ended by %v: %s", end, describe(done))
	}
	for _, pod := range jobPods(t, job) {
		if hasFinalizer(t, namespace, pod.Name) {
			t.Errorf("pod %s keeps its finalizer", pod.Name)
		}
	}
}
