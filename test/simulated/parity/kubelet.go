package parity

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/simulated/podstatus"
)

// nodeName is the node that pods are bound to. There is no Node object: nothing on
// these control planes reads nodes.
const nodeName = "played"

// readySince is when the pod of index 0 became ready, as far as the control plane can
// tell. Each further index becomes ready a minute later, so that it is certain which
// pods are deleted first if there are too many.
var readySince = time.Date(1999, time.December, 30, 0, 0, 0, 0, time.UTC)

// A kubelet simulates the node for one case on one side. It acts on pods only through
// the API.
type kubelet struct {
	*side
	name string // of the Job
}

// tend does what a node does by itself: it starts pods (not if manual), and completes
// the deletion of pods (not if hold).
func (k kubelet) tend(ctx context.Context, manual, hold bool) error {
	k.mu.Lock()
	var start, end []*seenPod
	for _, p := range k.pods {
		over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		switch {
		case p.gone || p.ended:
		case p.GenerateName == added && p.Status.Phase == corev1.PodPending:
			// The step that added it decides what happens to it.
		case p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodPending && !manual && len(p.Spec.SchedulingGates) == 0:
			start = append(start, p)
		case p.DeletionTimestamp != nil && p.Spec.NodeName != "" && (over || !hold):
			end = append(end, p)
			p.ended = true
		}
	}
	k.mu.Unlock()
	for _, p := range start {
		if err := k.run(ctx, p.Pod); err != nil {
			return err
		}
	}
	for _, p := range end {
		if err := k.finalize(ctx, p.Pod, corev1.PodFailed); err != nil {
			return err
		}
	}
	return nil
}

// run binds a pod and makes it ready.
func (k kubelet) run(ctx context.Context, pod *corev1.Pod) error {
	if len(pod.Spec.SchedulingGates) > 0 {
		ungate := []byte(`{"spec":{"schedulingGates":null}}`)
		_, err := k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, ungate, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("ungate: %w", err)
		}
	}
	if pod.Spec.NodeName == "" {
		err := k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
		}, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("bind: %w", err)
		}
	}
	running := pod.DeepCopy()
	podstatus.SetRunning(running, true, readySince.Add(time.Duration(indexOf(pod)+1)*time.Minute))
	return k.patch(ctx, pod, running.Status)
}

// An outcome is how a pod ends: with the exit code of one container (the first main
// one, unless another is named) and a condition.
type outcome struct {
	exit      int32
	container string
	condition string
}

func (k kubelet) succeed(ctx context.Context, pod *corev1.Pod, how outcome) error {
	return k.patch(ctx, pod, ended(pod, corev1.PodSucceeded, how))
}

func (k kubelet) fail(ctx context.Context, pod *corev1.Pod, how outcome) error {
	return k.patch(ctx, pod, ended(pod, corev1.PodFailed, how))
}

// finalize completes the deletion of a pod: its containers end, then its object may go.
func (k kubelet) finalize(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) error {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		how := outcome{exit: 143}
		if phase == corev1.PodSucceeded {
			how.exit = 0
		}
		if err := k.patch(ctx, pod, ended(pod, phase, how)); err != nil {
			return err
		}
	}
	now := int64(0)
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ended is the status of a pod that ends.
func ended(pod *corev1.Pod, phase corev1.PodPhase, how outcome) corev1.PodStatus {
	over := pod.DeepCopy()
	podstatus.SetEnded(over, phase, cmp.Or(how.container, pod.Spec.Containers[0].Name), how.exit, time.Now())
	if how.condition != "" {
		podstatus.SetCondition(over, corev1.PodConditionType(how.condition), true, "", time.Now())
	}
	return over.Status
}

// patch writes a status to a pod. A pod that is gone is not an error.
func (k kubelet) patch(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	object, ok := k.server.Get("pods", types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	now, isPod := object.(*corev1.Pod)
	if !ok || !isPod || now.UID != pod.UID {
		return nil
	}
	now.Status.Phase = status.Phase
	now.Status.Conditions = status.Conditions
	now.Status.InitContainerStatuses, now.Status.ContainerStatuses = status.InitContainerStatuses, status.ContainerStatuses
	if status.StartTime != nil {
		now.Status.StartTime = status.StartTime
	}
	_, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err):
		return k.patch(ctx, pod, status)
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}
