package hostnode

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"jobpolicy.dev/deploy/local/must"
)

// applyPatch does what the API server does with a strategic merge patch of a pod.
func applyPatch(t *testing.T, pod *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	before, err := json.Marshal(pod)
	must.Succeed(t, err)
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	must.Succeed(t, err)
	out := &corev1.Pod{}
	must.Succeed(t, json.Unmarshal(after, out))
	return out
}

func TestStatusPatchReplacesWhatIsOursOnly(t *testing.T) {
	foreign := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}, Status: corev1.PodStatus{
		Phase:    corev1.PodPending,
		QOSClass: corev1.PodQOSBurstable,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "old"},
			foreign,
		},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		},
	}}
	next := &corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		},
	}
	body, err := statusPatch("u-1", next)
	must.Succeed(t, err)
	got := applyPatch(t, pod, body)

	want := pod.DeepCopy()
	want.Status.Phase = corev1.PodRunning
	want.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, foreign}
	want.Status.ContainerStatuses = next.ContainerStatuses
	must.Equal(t, "patched pod", want, got)
}

func TestStatusPatchNamesTheUID(t *testing.T) {
	body, err := statusPatch("u-2", &corev1.PodStatus{})
	must.Succeed(t, err)
	got := applyPatch(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}}, body)
	if got.UID != "u-2" {
		t.Errorf("uid after the patch is %q: the API server would not notice another pod", got.UID)
	}
}
