package podjob

import (
	"context"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// create creates pods. Each name ends in the first number that is free in the group. So if
// the answer to a creation is lost and the pod appears after all, the next creation finds
// its name taken.
func (c *Controller) create(ctx context.Context, g Group, create *jobpolicyv1.CreatePods) error {
	taken := map[string]bool{}
	for i := range g.Pods {
		taken[g.Pods[i].Name] = true
	}
	for _, p := range wire.NewPods(g.Job, create) {
		pod := p.From(g.Job)
		pod.OwnerReferences = []metav1.OwnerReference{g.Owner}
		for n := 0; pod.Name == "" || taken[pod.Name]; n++ {
			pod.Name = pod.GenerateName + strconv.Itoa(n)
		}
		taken[pod.Name] = true
		if _, err := c.Pods.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			c.createAfter.Store(g.uid(), time.Now().Add(createBackoff)) // Other steps go on meanwhile.
			return fmt.Errorf("creating pod %s: %w", pod.Name, err)
		}
	}
	if create != nil {
		c.createAfter.Delete(g.uid())
	}
	return nil
}

func (c *Controller) delete(ctx context.Context, pod *corev1.Pod, releaseFirst bool) error {
	if releaseFirst {
		if err := c.release(ctx, pod); err != nil {
			return err
		}
	}
	err := c.Pods.Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
	return unlessGone(err)
}

// release removes the finalizer that keeps a pod until it is counted. The UID is a
// precondition: the API server refuses to change it.
func (c *Controller) release(ctx context.Context, pod *corev1.Pod) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"$deleteFromPrimitiveList/finalizers":[%q]}}`, pod.UID, batchv1.JobTrackingFinalizer)
	_, err := c.Pods.Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return unlessGone(err)
}

// unlessGone returns the error, or nil if it says that the pod does not exist any more.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Remove releases and deletes pods that count nowhere any more, for example because
// their owner is gone.
func (c *Controller) Remove(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := c.delete(ctx, &pods[i], true); err != nil {
			return err
		}
	}
	return nil
}
