package executor

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A Job whose policy looks at nodes is reconciled when that of a pod that is being deleted changes. Without such a
// policy nobody reads nodes.
func TestAJobFollowsTheNodesOfItsPods(t *testing.T) {
	node := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
		}
	}
	deleted := testPod(7, func(pod *corev1.Pod) {
		pod.Spec.NodeName = "a"
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(time.Now().Add(-time.Hour))), new(int64(30))
	})
	policy := func(text string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { job.Annotations = map[string]string{wire.Policy: text} }
	}
	last := func(d *script) *jobpolicyv1.DecideJobRequest {
		requests := d.Requests()
		if len(requests) == 0 {
			return nil
		}
		return requests[len(requests)-1]
	}

	client, d := newServer(testJob(policy("{job: {terminationDeadlineSeconds: 60, terminationDeadlineNode: NotReady}}")), deleted.DeepCopy(), node(corev1.ConditionTrue)), &script{}
	start(t, testConfig(client, d))
	await := func(what string, want jobpolicyv1.NodeState) {
		t.Helper()
		eventually(t, what, func() bool {
			pods := last(d).GetTerminatingPods()
			return len(pods) == 1 && pods[0].GetNode() == want
		})
	}
	await("the node is Ready", jobpolicyv1.NodeState_NODE_STATE_READY)
	if _, err := client.CoreV1().Nodes().Update(t.Context(), node(corev1.ConditionUnknown), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("the node is not Ready", jobpolicyv1.NodeState_NODE_STATE_NOT_READY)
	if err := client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("the node is gone", jobpolicyv1.NodeState_NODE_STATE_GONE)

	client, d = newServer(testJob(policy("{job: {terminationDeadlineSeconds: 60}}")), deleted.DeepCopy(), node(corev1.ConditionTrue)), &script{}
	start(t, testConfig(client, d))
	eventually(t, "a request about the pod", func() bool { return len(last(d).GetTerminatingPods()) == 1 })
	for _, action := range client.Actions() {
		if action.GetResource().Resource == "nodes" {
			t.Errorf("without a policy that looks at nodes it reads them: %v", action)
		}
	}
}
