package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// create creates a pod. Its name follows from the failures so far: after a creation
// whose answer was lost, another one finds the name taken.
func (c *controller) create(ctx context.Context, t *Training, pod *corev1.Pod, status *jobpolicyv1.JobStatus) error {
	pod.Name = fmt.Sprint(pod.GenerateName, int(status.GetFailed())+len(status.GetUncounted().GetFailed()))
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(t, kind)}
	_, err := c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil { // Meanwhile the pods that have ended are to be counted.
		c.createAfter[t.UID] = time.Now().Add(10 * time.Second)
	}
	return err
}

func (c *controller) delete(ctx context.Context, pod *corev1.Pod, releaseFirst bool) error {
	if releaseFirst {
		if err := c.release(ctx, pod); err != nil {
			return err
		}
	}
	return found(c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID))))
}

// release removes the finalizer, which keeps a pod until it is counted.
func (c *controller) release(ctx context.Context, pod *corev1.Pod) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"$deleteFromPrimitiveList/finalizers":[%q]}}`, pod.UID, batchv1.JobTrackingFinalizer)
	_, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return found(err)
}

// found leaves out the error that a pod is gone already.
func found(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// remove removes pods that count nowhere any more.
func (c *controller) remove(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := c.delete(ctx, &pods[i], true); err != nil {
			return err
		}
	}
	return nil
}

// write writes the status, unless somebody else has written the Training meanwhile.
func (c *controller) write(ctx context.Context, t *Training) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	if err != nil {
		return err
	}
	written, err := c.trainings.Namespace(t.Namespace).UpdateStatus(ctx, &unstructured.Unstructured{Object: object}, metav1.UpdateOptions{})
	if err == nil {
		t.ResourceVersion = written.GetResourceVersion()
	}
	return err
}
