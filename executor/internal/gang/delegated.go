package gang

import (
	"cmp"
	"context"
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
)

// delegated finds or creates the PodGroup of a Job whose controller has the Workload. Before there is a
// template, pods wait: without a group they would stay without one.
func (r *request) delegated(ctx context.Context) (string, error) {
	workload, template, err := r.parentTemplate()
	if err != nil {
		found, listErr := r.controlled("")
		switch {
		case listErr != nil:
			return "", listErr
		case len(found) == 1: // It does its work without the Workload.
			return found[0].Name, nil
		case !r.want.GetMayCreate():
			return "", errNoWorkload
		}
		return "", err
	}
	size := r.size()
	if gang := template.SchedulingPolicy.Gang; gang != nil {
		// The bound on a gang holds here, too: the PodGroup is the Job's own, and nobody else sees how many
		// of its pods can still run. The Workload stays as it is.
		size = gangSize{min(size.min, gang.MinCount), min(size.max, gang.MinCount)}
	}
	made, err := newDelegatedPodGroup(r.job, workload, template.Name)
	if err != nil {
		return "", err
	}
	if gang := made.Spec.SchedulingPolicy.Gang; gang != nil {
		gang.MinCount = size.min
	}
	return r.podGroup(ctx, made, r.want.GetMayCreate(), size)
}

// parentTemplate is the template that the Job was told of, in its controller's Workload.
func (r *request) parentTemplate() (*schedulingv1beta1.Workload, *schedulingv1beta1.PodGroupTemplate, error) {
	parent := metav1.GetControllerOfNoCopy(r.job)
	if parent == nil {
		return nil, nil, wait("the Job has no controller any more")
	}
	workloads, err := r.byOwner(ownerKey(r.job.Namespace, wire.KindOf(parent), parent.Name))
	if err != nil {
		return nil, nil, err
	}
	workloads = slices.DeleteFunc(workloads, func(w *schedulingv1beta1.Workload) bool { return ofAnother(w, parent) })
	if len(workloads) == 0 {
		return nil, nil, wait("%s %s, which controls the Job, has no Workload yet", parent.Kind, parent.Name)
	}
	slices.SortFunc(workloads, func(a, b *schedulingv1beta1.Workload) int { return cmp.Compare(a.Name, b.Name) })
	name := r.want.GetTemplateName()
	for _, w := range workloads {
		for i := range w.Spec.PodGroupTemplates {
			if t := &w.Spec.PodGroupTemplates[i]; name == "" || t.Name == name {
				return w, t, nil
			}
		}
	}
	return nil, nil, wait("Workload %s of %s %s has no template %q", workloads[0].Name, parent.Kind, parent.Name, name)
}

// ofAnother reports whether a Workload belongs to an earlier object of the parent's name (invariant I8).
func ofAnother(w *schedulingv1beta1.Workload, parent *metav1.OwnerReference) bool {
	ref := wire.ControllerOf(w, wire.KindOf(parent))
	return ref != nil && ref.Name == parent.Name && ref.UID != parent.UID
}
