package conformance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/simulated/jobspec"
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
	at := metav1.NewTime(readySince.Add(time.Duration(indexOf(pod)+1) * time.Minute))
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &at}
	status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	for _, c := range pod.Spec.InitContainers {
		state := terminated(0)
		if jobspec.Sidecar(c) {
			state = running
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, Ready: true, State: state})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Ready: true, State: running})
	}
	return k.patch(ctx, pod, status)
}

func terminated(exit int32) corev1.ContainerState {
	now := metav1.Now()
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, StartedAt: now, FinishedAt: now}}
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

func ended(pod *corev1.Pod, phase corev1.PodPhase, how outcome) corev1.PodStatus {
	now := metav1.Now()
	status := corev1.PodStatus{Phase: phase, StartTime: pod.Status.StartTime}
	status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: now}}
	if how.condition != "" {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: corev1.PodConditionType(how.condition), Status: corev1.ConditionTrue, LastTransitionTime: now,
		})
	}
	failedFirst := false
	for _, c := range pod.Spec.InitContainers {
		exit := int32(0)
		if how.container == c.Name {
			exit, failedFirst = how.exit, !jobspec.Sidecar(c) && how.exit != 0
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: terminated(exit)})
	}
	for i, c := range pod.Spec.Containers {
		exit := int32(0)
		if how.container == c.Name || how.container == "" && i == 0 {
			exit = how.exit
		}
		state := terminated(exit)
		if failedFirst {
			// The main containers were never started.
			state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: state})
	}
	return status
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
