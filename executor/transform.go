package executor

import (
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const annotationPrefix = "batch.kubernetes.io/"

// trimPodObject is the pod informer's transform. Objects that are no pods (a
// tombstone) pass unchanged.
func trimPodObject(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	return trimPod(pod), nil
}

// trimPod keeps of a pod what policy or the executor reads, in a new object, so
// that nothing else stays in memory. Every pod of the cluster is cached. What is
// kept here, package leanpods decodes.
func trimPod(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:                       pod.Name,
			Namespace:                  pod.Namespace,
			UID:                        pod.UID,
			ResourceVersion:            pod.ResourceVersion,
			Labels:                     pod.Labels,
			Annotations:                trimAnnotations(pod.Annotations),
			OwnerReferences:            pod.OwnerReferences,
			Finalizers:                 pod.Finalizers,
			CreationTimestamp:          pod.CreationTimestamp,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			InitContainers: trimInitContainers(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			Conditions:            trimConditions(pod.Status.Conditions),
			ContainerStatuses:     trimStatuses(pod.Status.ContainerStatuses),
			InitContainerStatuses: trimStatuses(pod.Status.InitContainerStatuses),
		},
	}
}

func trimAnnotations(annotations map[string]string) map[string]string {
	var kept map[string]string
	for k, v := range maps.All(annotations) {
		if !strings.HasPrefix(k, annotationPrefix) {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[k] = v
	}
	return kept
}

// trimInitContainers keeps the sidecars: their end counts as the pod's.
func trimInitContainers(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range containers {
		if containers[i].RestartPolicy != nil {
			kept = append(kept, corev1.Container{Name: containers[i].Name, RestartPolicy: containers[i].RestartPolicy})
		}
	}
	return kept
}

func trimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	kept := make([]corev1.PodCondition, len(conditions))
	for i, c := range conditions {
		kept[i] = corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}
	}
	return kept
}

func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(statuses) == 0 {
		return nil
	}
	kept := make([]corev1.ContainerStatus, len(statuses))
	for i, s := range statuses {
		kept[i] = corev1.ContainerStatus{Name: s.Name, RestartCount: s.RestartCount, Ready: s.Ready}
		if ended := s.State.Terminated; ended != nil {
			kept[i].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: ended.ExitCode, FinishedAt: ended.FinishedAt}
		}
	}
	return kept
}

// trimJobObject is the Job informer's transform. The template is needed to
// create pods, so a Job is kept but for its field ownership.
func trimJobObject(obj any) (any, error) {
	if job, ok := obj.(*batchv1.Job); ok {
		job.ManagedFields = nil
	}
	return obj, nil
}
