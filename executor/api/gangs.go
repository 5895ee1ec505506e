package api

import (
	"context"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/writes"
)

// Workload reads a Workload by its name. ErrGone: there is none.
func (c *Client) Workload(ctx context.Context, namespace, name string) (*schedulingv1beta1.Workload, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w, err := c.Kubernetes.SchedulingV1beta1().Workloads(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ErrGone
	}
	return w, err
}

// CreateWorkload creates a Workload and returns it as the API server has it. Errors are those of
// the API server.
func (c *Client) CreateWorkload(ctx context.Context, job Subject, w *schedulingv1beta1.Workload) (made *schedulingv1beta1.Workload, err error) {
	defer func() { c.written(job, writes.CreateWorkload, "", "", err) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.Kubernetes.SchedulingV1beta1().Workloads(w.Namespace).Create(ctx, w, metav1.CreateOptions{})
}

// EnsurePodGroup creates a PodGroup, or reads the one that has its name. Errors are those of the
// API server.
func (c *Client) EnsurePodGroup(ctx context.Context, job Subject, group *schedulingv1beta1.PodGroup) (made *schedulingv1beta1.PodGroup, err error) {
	defer func() { c.written(job, writes.CreatePodGroup, "", "", err) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	groups := c.Kubernetes.SchedulingV1beta1().PodGroups(group.Namespace)
	made, err = groups.Create(ctx, group, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return groups.Get(ctx, group.Name, metav1.GetOptions{})
	}
	return made, err
}
