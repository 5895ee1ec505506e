package faults

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/deploy/local/must"
)

// The tests simulate the node. A bound pod that is deleted disappears only when end is
// called; an unbound one disappears at once.

// An ending is how a pod's containers end.
type ending struct {
	exit int32
	at   time.Time
	// condition is set to true on the pod, if not empty.
	condition corev1.PodConditionType
}

func (l *lab) bind(pods ...corev1.Pod) {
	l.Helper()
	for _, pod := range pods {
		err := client.CoreV1().Pods(pod.Namespace).Bind(l.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "played"},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			l.Fatalf("bind: %v", err)
		}
	}
}

// run makes pods run and ready.
func (l *lab) run(pods ...corev1.Pod) {
	l.Helper()
	for _, pod := range pods {
		now := metav1.Now()
		l.setStatus(pod, corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &now,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			}},
		})
	}
}

func (l *lab) succeed(pods ...corev1.Pod) {
	l.Helper()
	for _, pod := range pods {
		l.setStatus(pod, endedStatus(corev1.PodSucceeded, ending{}))
	}
}

func (l *lab) fail(pods ...corev1.Pod) {
	l.Helper()
	for _, pod := range pods {
		l.setStatus(pod, endedStatus(corev1.PodFailed, ending{exit: 1}))
	}
}

// end ends the containers of bound pods that are being deleted, and completes the
// deletion.
func (l *lab) end(pods ...corev1.Pod) {
	l.Helper()
	for _, pod := range pods {
		if !ended(&pod) {
			l.setStatus(pod, endedStatus(corev1.PodFailed, ending{exit: 143}))
		}
		l.remove(pod)
	}
}

// remove deletes a pod without grace.
func (l *lab) remove(pod corev1.Pod) {
	l.Helper()
	err := client.CoreV1().Pods(pod.Namespace).Delete(l.Context(), pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		l.Fatalf("delete pod: %v", err)
	}
}

func endedStatus(phase corev1.PodPhase, how ending) corev1.PodStatus {
	at := metav1.NewTime(how.at)
	if how.at.IsZero() {
		at = metav1.Now()
	}
	status := corev1.PodStatus{
		Phase:      phase,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name:  "main",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: how.exit, FinishedAt: at}},
		}},
	}
	if how.condition != "" {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: how.condition, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	return status
}

// setStatus writes a pod's status. A pod that is gone needs none.
func (l *lab) setStatus(pod corev1.Pod, status corev1.PodStatus) {
	l.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	must.Succeed(l, err)
	_, err = client.CoreV1().Pods(pod.Namespace).Patch(l.Context(), pod.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		l.Fatalf("pod status: %v", err)
	}
}
