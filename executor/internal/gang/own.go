package gang

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/wire"
)

// own finds or creates the Workload and the PodGroup of a Job that no other object controls.
func (r *request) own(ctx context.Context) (string, error) {
	workload, err := r.workload(ctx)
	if err != nil || workload == nil {
		return "", err
	}
	if size := r.size(); !size.allows(workload.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang) {
		if workload, err = r.cfg.API.SetWorkloadMinCount(ctx, r.of, workload, size.min); err != nil {
			return "", fmt.Errorf("workload: %w", err)
		}
	}
	made, err := NewPodGroup(r.job, workload, workload.Spec.PodGroupTemplates[0].Name)
	if err != nil {
		return "", err
	}
	// The Workload shows that the Job began with a group, so a PodGroup that is gone is made again.
	return r.podGroup(ctx, made, r.creates || r.want.GetMayCreate(), r.size())
}

// workload finds or creates the Job's Workload; nil if there is none in the cache and nothing depends
// on it now.
func (r *request) workload(ctx context.Context) (*schedulingv1beta1.Workload, error) {
	objects, err := r.byOwner(ownerKey(r.job.Namespace, wire.JobKind.GroupKind(), r.job.Name))
	if err != nil {
		return nil, err
	}
	var found []*schedulingv1beta1.Workload
	for _, w := range objects {
		if metav1.IsControlledBy(w, r.job) {
			found = append(found, w)
		}
	}
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("the Job controls %d Workloads: %w", len(found), errNoGroup)
	case len(found) == 1:
		return checkTemplates(found[0])
	case r.want.GetMayCreate():
		return r.createWorkload(ctx)
	case !r.creates:
		return nil, nil
	}
	return r.readWorkload(ctx)
}

func (r *request) createWorkload(ctx context.Context) (*schedulingv1beta1.Workload, error) {
	made, err := NewWorkload(r.job, r.want.GetMinCount())
	if err != nil {
		r.cfg.Recorder.Eventf(r.job, corev1.EventTypeWarning, eventFailedCompilation, "Failed to compile Workload for Job %s: %v", r.job.Name, err)
		return nil, fmt.Errorf("workload: %w", err)
	}
	w, err := r.cfg.API.CreateWorkload(ctx, r.of, made)
	if apierrors.IsAlreadyExists(err) {
		found, readErr := r.readWorkload(ctx)
		if !errors.Is(readErr, errNoWorkload) {
			return found, readErr
		}
		// It was deleted in between. The Job has not begun, so another try may create it.
	}
	if err != nil {
		r.cfg.Recorder.Eventf(r.job, corev1.EventTypeWarning, "FailedWorkloadCreate", "Failed to create Workload for Job %s: %v", r.job.Name, err)
		return nil, fmt.Errorf("workload: %w", err)
	}
	r.cfg.Recorder.Eventf(r.job, corev1.EventTypeNormal, eventWorkloadCreated, "Created Workload %s for Job %s", w.Name, r.job.Name)
	return r.checkWorkload(w) // Admission may have changed it.
}

// readWorkload reads the Job's Workload from the API server: the cache may not show it yet.
func (r *request) readWorkload(ctx context.Context) (*schedulingv1beta1.Workload, error) {
	w, err := r.cfg.API.Workload(ctx, r.job.Namespace, WorkloadName(r.job))
	if errors.Is(err, api.ErrGone) {
		return nil, errNoWorkload
	}
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	return r.checkWorkload(w)
}

func (r *request) checkWorkload(w *schedulingv1beta1.Workload) (*schedulingv1beta1.Workload, error) {
	if !metav1.IsControlledBy(w, r.job) {
		return nil, fmt.Errorf("the Job does not control Workload %s: %w", w.Name, errNoGroup)
	}
	return checkTemplates(w)
}

// checkTemplates: the built-in controller (v1.37) does nothing more for a Job whose Workload has another
// number of templates, and does not count its pods either.
func checkTemplates(w *schedulingv1beta1.Workload) (*schedulingv1beta1.Workload, error) {
	if n := len(w.Spec.PodGroupTemplates); n != 1 {
		return nil, wait("Workload %s has %d templates of pod groups, want 1", w.Name, n)
	}
	return w, nil
}
