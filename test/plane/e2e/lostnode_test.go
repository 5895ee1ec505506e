package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

// lostSeconds is the termination deadline of these Jobs.
const lostSeconds = 4

// kubernetes/enhancements#6262, kueue KEP-6757: a pod whose node is lost stays in deletion, and its Job, which
// replaces pods only when they have failed, waits for ever. With a termination deadline it does not. The
// executor is killed while it waits, and again after the pod has been replaced.
func TestAPodOnALostNodeIsReplaced(t *testing.T) {
	namespace := newNamespace(t)
	node := nodeOf(namespace, "lost") // Pods of a node that is not there are collected after 40 s.
	createNode(t, node)
	stays, returns := loseNode(t, namespace, "stays", node, ""), loseNode(t, namespace, "returns", node, "")
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

// A policy may ask for the node's Ready condition, too: a pod whose kubelet works and is only slow to stop it is not run
// twice. Executor and engine are killed while the deadline has passed and the node is Ready, and again after it is not.
func TestAPodIsGivenUpOnlyIfItsNodeIsNotReady(t *testing.T) {
	namespace := newNamespace(t)
	var lost []*corev1.Pod
	stops := map[string]func(){} // Of kubelets.
	for _, name := range []string{"unreachable", "removed", "slow"} {
		createNode(t, nodeOf(namespace, name))
		stops[name] = keepReady(t, nodeOf(namespace, name))
		lost = append(lost, loseNode(t, namespace, name, nodeOf(namespace, name), ", terminationDeadlineNode: NotReady"))
	}
	unreachable, removed, slow := lost[0], lost[1], lost[2]
	passed := func() bool { return time.Since(slow.DeletionTimestamp.Time) > (lostSeconds+1)*time.Second }
	eventually(t, "the deadline has passed", func() (bool, string) { return passed(), "" })
	killAndStart(t, cluster.Executor)
	killAndStart(t, cluster.Engine)
	if out, err := kubectlJobpolicy(t, namespace, "explain", "job/slow"); err != nil || !strings.Contains(out, "because their nodes are Ready: 1 (") {
		t.Errorf("explain, error %v, does not say that the node is Ready:\n%s", err, out)
	}
	for _, pod := range lost {
		checkNotGivenUp(t, pod)
	}

	stops["unreachable"]()
	setReady(t, nodeOf(namespace, "unreachable"), corev1.ConditionUnknown)
	stops["removed"]()
	objects.Delete(t, client.CoreV1().Nodes(), nodeOf(namespace, "removed"), metav1.DeleteOptions{})
	for _, pod := range []*corev1.Pod{unreachable, removed} {
		replacementOf(t, pod)
		waitReleased(t, pod)
	}
	killAndStart(t, cluster.Executor)
	killAndStart(t, cluster.Engine)
	setReady(t, nodeOf(namespace, "unreachable"), corev1.ConditionTrue)
	comeBack(t, unreachable, corev1.PodSucceeded)
	for _, pod := range []*corev1.Pod{unreachable, removed} {
		runOnNode(t, replacementOf(t, pod))
		checkLostOnce(t, waitFinished(t, namespace, pod.Labels[batchv1.JobNameLabel]))
	}
	checkNotGivenUp(t, slow)
	forceDelete(t, removed) // Else its namespace stays until the pod is collected.
	comeBack(t, slow, corev1.PodSucceeded)
	if job := waitFinished(t, namespace, "slow"); !isComplete(job) || job.Status.Failed != 0 || job.Status.Succeeded != 1 {
		t.Errorf("a Job whose pod was only slow to stop, and has succeeded: %s", describe(job))
	}
}

// nodeOf is a name for the node of a Job's pod.
func nodeOf(namespace, job string) string { return namespace + "-" + job }

// createNode creates a node that is Ready, until the test ends.
func createNode(t *testing.T, name string) {
	t.Helper()
	objects.Create(t, client.CoreV1().Nodes(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	t.Cleanup(func() {
		if err := client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	setReady(t, name, corev1.ConditionTrue)
}

// keepReady reports every few seconds that a node is Ready, as its kubelet does, until the test ends or calls stop. The control
// plane sets a node that says nothing to Unknown after 50 s, and this test may take longer on a busy machine.
func keepReady(t *testing.T, name string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var kubelet sync.WaitGroup
	kubelet.Go(func() {
		for tick := time.Tick(5 * time.Second); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				_ = patchReady(ctx, name, corev1.ConditionTrue) // The next one follows.
			}
		}
	})
	stop = func() { cancel(); kubelet.Wait() }
	t.Cleanup(stop)
	return stop
}

// setReady sets the condition Ready of a node.
func setReady(t *testing.T, name string, status corev1.ConditionStatus) {
	t.Helper()
	must.Succeed(t, patchReady(t.Context(), name, status))
}

func patchReady(ctx context.Context, name string, status corev1.ConditionStatus) error {
	patch := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": %q, "lastHeartbeatTime": %q}]}}`, status, time.Now().UTC().Format(time.RFC3339))
	_, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// checkNotGivenUp: nothing takes the place of the pod, and it does not count as failed.
func checkNotGivenUp(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	job := getJob(t, pod.Namespace, pod.Labels[batchv1.JobNameLabel])
	if pods := jobPods(t, job); len(pods) != 1 || len(pods[0].Finalizers) == 0 || job.Status.Failed != 0 || job.Status.UncountedTerminatedPods != nil && len(job.Status.UncountedTerminatedPods.Failed) > 0 {
		t.Errorf("the pod of a node that is Ready is given up: %s, pods %d", describe(job), len(pods))
	}
}

// loseNode creates a Job of one pod, and deletes the pod after its node is lost. options are further ones of the Job. No
// scheduler and no kubelet knows the pods: the test is both.
func loseNode(t *testing.T, namespace, name, node, options string) *corev1.Pod {
	t.Helper()
	job := createJobWith(t, namespace, name, fmt.Sprintf("{terminationDeadlineSeconds: %d%s}", lostSeconds, options),
		batchv1.JobSpec{PodReplacementPolicy: new(batchv1.Failed), Template: byHand()})
	pod := onlyPod(t, job, func(corev1.Pod) bool { return true })
	bind(t, pod, node)
	pod.Status.Phase = corev1.PodRunning
	objects.UpdateStatus(t, client.CoreV1().Pods(namespace), withoutVersion(pod))
	objects.Delete(t, client.CoreV1().Pods(namespace), pod.Name, metav1.DeleteOptions{})
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

// waitReleased waits until a lost pod has no finalizer, or is collected because its node is gone.
func waitReleased(t *testing.T, lost *corev1.Pod) {
	t.Helper()
	eventually(t, "the lost pod is released", func() (bool, string) {
		pod, err := client.CoreV1().Pods(lost.Namespace).Get(t.Context(), lost.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		if err != nil {
			t.Fatalf("the lost pod: %v", err)
		}
		return len(pod.Finalizers) == 0, pod.String()
	})
}

// runOnNode binds a pod to the node that is there.
func runOnNode(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	bind(t, pod, cluster.DefaultNodeName)
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
	pod := objects.Get(t, pods, lost.Name)
	pod.Status.Phase = phase
	objects.UpdateStatus(t, pods, withoutVersion(pod))
	forceDelete(t, pod)
}

// forceDelete completes the deletion of a pod, unless it is complete.
func forceDelete(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	err := client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}
