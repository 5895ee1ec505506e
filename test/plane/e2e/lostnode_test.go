package e2e

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/executor/wire"
)

// lostSeconds is the termination deadline of these Jobs.
const lostSeconds = 4

// kubernetes/enhancements#6262, kueue KEP-6757: a pod whose node is lost stays in deletion, and its Job, which
// replaces pods only when they have failed, waits for ever. With a termination deadline it does not. The
// executor is killed while it waits, and again after the pod has been replaced.
func TestAPodOnALostNodeIsReplaced(t *testing.T) {
	namespace := newNamespace(t)
	stays, returns := loseNode(t, namespace, "stays"), loseNode(t, namespace, "returns")
	killAndStart(t, cluster.Executor)
	for _, lost := range []*corev1.Pod{stays, returns} {
		replacement := replacementOf(t, lost)
		due := lost.DeletionTimestamp.Add(lostSeconds * time.Second)
		if replacement.CreationTimestamp.Time.Before(due.Add(-time.Second)) { // Creation times are whole seconds.
			t.Errorf("pod %s was replaced at %s, and counts as failed at %s", lost.Name, replacement.CreationTimestamp, due)
		}
		waitReleased(t, lost)
	}
	killAndStart(t, cluster.Executor)
	comeBack(t, returns, corev1.PodSucceeded)
	for _, lost := range []*corev1.Pod{stays, returns} {
		runOnNode(t, replacementOf(t, lost))
	}
	for _, name := range []string{"stays", "returns"} {
		checkLostOnce(t, waitFinished(t, namespace, name))
	}
	if _, err := client.CoreV1().Pods(namespace).Get(t.Context(), stays.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("the pod whose node stays away is gone: %v", err)
	}
	comeBack(t, stays, corev1.PodFailed)
	checkLostOnce(t, getJob(t, namespace, "stays"))
}

// checkLostOnce: the lost pod counts as failed, once, and the replacement has succeeded.
func checkLostOnce(t *testing.T, job *batchv1.Job) {
	t.Helper()
	s := job.Status
	if !isComplete(job) || s.Failed != 1 || s.Succeeded != 1 || s.Terminating != nil && *s.Terminating != 0 {
		t.Errorf("a Job that has lost one pod: %s", describe(job))
	}
}

// loseNode creates a Job of one pod, and deletes the pod after its node is lost. No scheduler and no kubelet knows
// the pods: the test is both.
func loseNode(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	template := shell("sleep 2", corev1.RestartPolicyNever)
	template.Spec.SchedulerName = "the-test"
	job, err := client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{wire.Policy: `{job: {terminationDeadlineSeconds: 4}}`}},
		Spec:       batchv1.JobSpec{PodReplacementPolicy: new(batchv1.Failed), Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := onlyPod(t, job, func(corev1.Pod) bool { return true })
	bind(t, pod, "lost")
	pod.Status.Phase = corev1.PodRunning
	if _, err := client.CoreV1().Pods(namespace).UpdateStatus(t.Context(), withoutVersion(pod), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return onlyPod(t, job, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// withoutVersion is a copy of a pod for an update that does not look at what changed meanwhile.
func withoutVersion(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion = ""
	return pod
}

// onlyPod waits for the one pod of the Job that is meant.
func onlyPod(t *testing.T, job *batchv1.Job, meant func(corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	eventually(t, "the Job "+job.Name+" has one such pod", func() (bool, string) {
		pods = slices.DeleteFunc(jobPods(t, job), func(p corev1.Pod) bool { return !meant(p) })
		return len(pods) == 1, describe(getJob(t, job.Namespace, job.Name))
	})
	return &pods[0]
}

// replacementOf waits for the pod that was created in place of a lost one.
func replacementOf(t *testing.T, lost *corev1.Pod) *corev1.Pod {
	t.Helper()
	job := getJob(t, lost.Namespace, lost.Labels[batchv1.JobNameLabel])
	return onlyPod(t, job, func(p corev1.Pod) bool { return p.UID != lost.UID })
}

func waitReleased(t *testing.T, lost *corev1.Pod) {
	t.Helper()
	eventually(t, "the lost pod is released", func() (bool, string) {
		pod, err := client.CoreV1().Pods(lost.Namespace).Get(t.Context(), lost.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("the lost pod: %v", err)
		}
		return len(pod.Finalizers) == 0, pod.String()
	})
}

// runOnNode binds a pod to the node that is there.
func runOnNode(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("nodes %v, %v", nodes, err)
	}
	bind(t, pod, nodes.Items[0].Name)
}

func bind(t *testing.T, pod *corev1.Pod, node string) {
	t.Helper()
	err := client.CoreV1().Pods(pod.Namespace).Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("bind: %v", err)
	}
}

// comeBack says how the pod of a lost node has ended, and completes its deletion, as its kubelet does when it is back.
func comeBack(t *testing.T, lost *corev1.Pod, phase corev1.PodPhase) {
	t.Helper()
	pods := client.CoreV1().Pods(lost.Namespace)
	pod, err := pods.Get(t.Context(), lost.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = phase
	if _, err := pods.UpdateStatus(t.Context(), withoutVersion(pod), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
}
