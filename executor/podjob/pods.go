package podjob

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// groupAnnotation names the group that a pod was created for. Names of pods do not say it: the
// Indexed group train and the NonIndexed group train-0 both create a pod train-0-0.
const groupAnnotation = "jobpolicy.dev/group"

// releaseTries is how often the release of a running pod is tried, if each try ends with a
// conflict.
const releaseTries = 5

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
		pod.Annotations[groupAnnotation] = g.Job.Name
		if err := c.createOne(ctx, g, pod, taken); err != nil {
			c.deferCreation(g.uid(), time.Now()) // Other steps go on meanwhile.
			return fmt.Errorf("creating pod %s: %w", pod.Name, err)
		}
	}
	if create != nil {
		c.createAfter.Delete(g.uid())
	}
	return nil
}

// createOne creates a pod under the first name that is not taken, and marks that name as
// taken. It passes over the names of pods that are not of this group.
func (c *Controller) createOne(ctx context.Context, g Group, pod *corev1.Pod, taken map[string]bool) error {
	for {
		for n := 0; pod.Name == "" || taken[pod.Name]; n++ {
			pod.Name = pod.GenerateName + strconv.Itoa(n)
		}
		taken[pod.Name] = true
		created, err := c.Pods.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		switch {
		case err == nil:
			return c.removeAltered(ctx, g, pod, created)
		case !apierrors.IsAlreadyExists(err):
			return err
		}
		live, readErr := c.Pods.Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if readErr != nil {
			return err
		}
		if g.made(live) {
			return err // An earlier creation made it; the next Step counts it.
		}
	}
}

// removeAltered removes a new pod, and returns an error, if admission has changed it so that it does
// not count for the group.
func (c *Controller) removeAltered(ctx context.Context, g Group, sent, stored *corev1.Pod) error {
	err := api.AlteredPod(sent, stored, nil)
	if err == nil && !g.made(stored) {
		err = fmt.Errorf("admission changed the new pod: its owner or the annotation %s", groupAnnotation)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, c.Remove(ctx, []corev1.Pod{*stored}))
}

// made reports whether the pod was created for this group.
func (g *Group) made(pod *corev1.Pod) bool {
	return g.owns(pod) && pod.Annotations[groupAnnotation] == g.Job.Name
}

// owns reports whether the pod has the group's owner. A reference to the owner that does not make it
// the controller shows nothing: anybody can create such a pod, and ByOwner leaves it out.
func (g *Group) owns(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.UID == g.Owner.UID && ref.Kind == g.Owner.Kind && ref.APIVersion == g.Owner.APIVersion &&
			ptr.Deref(ref.Controller, false) == ptr.Deref(g.Owner.Controller, false)
	})
}

// deferCreation lets a group create no pod for a while. It forgets the groups for which that
// time is over: some of them may be gone.
func (c *Controller) deferCreation(group [16]byte, now time.Time) {
	c.createAfter.Range(func(group, until any) bool {
		if until.(time.Time).Before(now) {
			c.createAfter.CompareAndDelete(group, until)
		}
		return true
	})
	c.createAfter.Store(group, now.Add(createBackoff))
}

// releaseAndDelete deletes a pod that is not to be counted.
func (c *Controller) releaseAndDelete(ctx context.Context, g Group, pod *corev1.Pod) error {
	released, err := c.releaseRunning(ctx, g, pod)
	if err != nil || released == nil {
		return err
	}
	return c.delete(ctx, released)
}

// delete deletes a pod. Without the finalizer another controller may have adopted the pod, so the
// deletion then requires the pod as it was seen last.
func (c *Controller) delete(ctx context.Context, pod *corev1.Pod) error {
	options := metav1.NewPreconditionDeleteOptions(string(pod.UID))
	if !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
		options.Preconditions.ResourceVersion = &pod.ResourceVersion
	}
	return unlessGone(c.Pods.Pods(pod.Namespace).Delete(ctx, pod.Name, *options))
}

// releaseRunning releases a pod that is about to be deleted and is not to be counted, and returns
// it as it is then; nil if it is gone, or has another owner by now (invariant I9). If the pod has
// changed since it was read, it is read again. It fails if the pod has ended: such a pod is to be
// counted after all.
func (c *Controller) releaseRunning(ctx context.Context, g Group, pod *corev1.Pod) (*corev1.Pod, error) {
	var conflict error
	for range releaseTries {
		if podcache.From(pod).Ended() {
			return nil, fmt.Errorf("releasing pod %s: %w", pod.Name, api.ErrPodEnded)
		}
		released, err := c.patchFinalizer(ctx, pod, pod.ResourceVersion)
		switch {
		case err == nil:
			return released, nil
		case !apierrors.IsConflict(err):
			return nil, unlessGone(err)
		}
		conflict = err
		live, err := c.Pods.Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || live.UID != pod.UID {
			return nil, conflict
		}
		if !g.owns(live) {
			return nil, nil
		}
		pod = live
	}
	return nil, conflict
}

// release removes the finalizer that keeps a pod until it is counted.
func (c *Controller) release(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.patchFinalizer(ctx, pod, "")
	return unlessGone(err)
}

// patchFinalizer removes the tracking finalizer. The UID is a precondition: the API server
// refuses to change it. So is the version, unless it is empty. api.ErrPutBack: the pod still has
// the finalizer, because an admission webhook has added it again.
func (c *Controller) patchFinalizer(ctx context.Context, pod *corev1.Pod, version string) (*corev1.Pod, error) {
	meta := map[string]any{"uid": pod.UID, "$deleteFromPrimitiveList/finalizers": []string{batchv1.JobTrackingFinalizer}}
	if version != "" {
		meta["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil, err
	}
	patched, err := c.Pods.Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err == nil && slices.Contains(patched.Finalizers, batchv1.JobTrackingFinalizer) {
		return nil, fmt.Errorf("releasing pod %s: %w", pod.Name, api.ErrPutBack)
	}
	return patched, err
}

// unlessGone returns the error, or nil if it says that the pod does not exist any more.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Remove releases and deletes pods that count nowhere any more, for example because
// their owner is gone. Each must be as it was read: without its owner, another controller may have
// adopted it since. After an error the other pods are removed all the same.
func (c *Controller) Remove(ctx context.Context, pods []corev1.Pod) error {
	var failed error
	for i := range pods {
		released, err := c.patchFinalizer(ctx, &pods[i], pods[i].ResourceVersion)
		if err == nil {
			err = c.delete(ctx, released)
		}
		failed = cmp.Or(failed, unlessGone(err))
	}
	return failed
}
