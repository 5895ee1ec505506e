package api

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/writes"
)

// Workload reads a Workload by its name. ErrGone: there is none.
func (c *Client) Workload(ctx context.Context, namespace, name string) (*schedulingv1beta1.Workload, error) {
	return readGang(ctx, c.Kubernetes.SchedulingV1beta1().Workloads(namespace), name)
}

// PodGroup reads a PodGroup by its name. ErrGone: there is none.
func (c *Client) PodGroup(ctx context.Context, namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	return readGang(ctx, c.Kubernetes.SchedulingV1beta1().PodGroups(namespace), name)
}

func readGang[T any](ctx context.Context, calls interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
}, name string,
) (found T, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err = calls.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		err = ErrGone
	}
	return found, err
}

// CreateWorkload creates a Workload and returns it as the API server has it. Errors are those of
// the API server.
func (c *Client) CreateWorkload(ctx context.Context, job Subject, w *schedulingv1beta1.Workload) (made *schedulingv1beta1.Workload, err error) {
	defer func() { c.written(job, writes.CreateWorkload, "", "", unlessExists(err)) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.Kubernetes.SchedulingV1beta1().Workloads(w.Namespace).Create(ctx, w, metav1.CreateOptions{})
}

// CreatePodGroup creates a PodGroup and returns it as the API server has it. Errors are those of
// the API server.
func (c *Client) CreatePodGroup(ctx context.Context, job Subject, group *schedulingv1beta1.PodGroup) (made *schedulingv1beta1.PodGroup, err error) {
	defer func() { c.written(job, writes.CreatePodGroup, "", "", unlessExists(err)) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.Kubernetes.SchedulingV1beta1().PodGroups(group.Namespace).Create(ctx, group, metav1.CreateOptions{})
}

// unlessExists leaves out that an object exists already: it is read then.
func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// The paths of the minimum of a gang.
const (
	workloadMinCount = "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount"
	podGroupMinCount = "/spec/schedulingPolicy/gang/minCount"
)

// SetWorkloadMinCount changes the minimum of the gang of a Workload's first template.
func (c *Client) SetWorkloadMinCount(ctx context.Context, job Subject, w *schedulingv1beta1.Workload, minCount int32) (changed *schedulingv1beta1.Workload, err error) {
	defer func() { c.written(job, writes.ChangeGang, w.Name, "workload", err) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.Kubernetes.SchedulingV1beta1().Workloads(w.Namespace).
		Patch(ctx, w.Name, types.JSONPatchType, minCountPatch(w.UID, workloadMinCount, minCount), metav1.PatchOptions{})
}

// SetPodGroupMinCount changes the minimum of the gang of a PodGroup.
func (c *Client) SetPodGroupMinCount(ctx context.Context, job Subject, group *schedulingv1beta1.PodGroup, minCount int32) (changed *schedulingv1beta1.PodGroup, err error) {
	defer func() { c.written(job, writes.ChangeGang, group.Name, "podgroup", err) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.Kubernetes.SchedulingV1beta1().PodGroups(group.Namespace).
		Patch(ctx, group.Name, types.JSONPatchType, minCountPatch(group.UID, podGroupMinCount, minCount), metav1.PatchOptions{})
}

// minCountPatch is a JSON patch, and no merge patch: that would replace the list of templates, without
// those of their fields that this program does not know. The UID is a precondition.
func minCountPatch(uid types.UID, path string, minCount int32) []byte {
	b, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": uid},
		{"op": "replace", "path": path, "value": minCount},
	})
	if err != nil {
		panic(fmt.Sprintf("a patch of a number does not marshal: %v", err))
	}
	return b
}

// PodsWait records that no pods are created for a Job before there is a Workload that they can use.
// It sends one event for each text.
func (c *Client) PodsWait(job Subject, why string) {
	if job.Refusals.Refused(writes.UseWorkload, "", c.Now(), why) {
		reason, message := writes.UseWorkload.Event(why)
		c.Recorder.Event(job.Object, corev1.EventTypeWarning, reason, message)
	}
}
