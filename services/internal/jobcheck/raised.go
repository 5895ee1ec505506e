package jobcheck

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// nextTryResources finds an option that raises nothing: restarts in place keep what the pod has, and
// what the template does not set cannot be multiplied.
func nextTryResources(s *subject) {
	option := s.options.GetJob().GetNextTryResources()
	if option == nil {
		return
	}
	if s.onFailure() {
		s.find(Warning, "template.spec.restartPolicy", "OnFailure: containers are restarted in their pod, with the resources that it has; job.nextTryResources acts on new pods only")
	}
	name := corev1.ResourceMemory
	if option.GetResource() == jobpolicyv1.RaisedResource_RAISED_RESOURCE_CPU {
		name = corev1.ResourceCPU
	}
	pod := &s.spec.Template.Spec
	found, sets := option.GetContainer() == "", pod.Resources != nil && has(*pod.Resources, name)
	if sets {
		s.podAtMost(*pod.Resources, name, option.GetMax())
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if option.GetContainer() == "" || option.GetContainer() == c.Name {
			found, sets = true, sets || has(c.Resources, name)
		}
	}
	switch {
	case !found:
		s.find(Warning, "template.spec.containers", fmt.Sprintf("none is called %s, so job.nextTryResources raises nothing", option.GetContainer()))
	case !sets:
		s.find(Warning, "template.spec.containers", fmt.Sprintf("none has a request or a limit of %s, so job.nextTryResources raises nothing", name))
	}
}

// podAtMost finds that the pod as a whole asks for the most that the option allows already: then its containers get no
// more, either.
func (s *subject) podAtMost(r corev1.ResourceRequirements, name corev1.ResourceName, allowed string) {
	most, err := resource.ParseQuantity(allowed)
	request, limit := r.Requests[name], r.Limits[name]
	if err == nil && (request.Cmp(most) >= 0 || limit.Cmp(most) >= 0) {
		s.find(Warning, "template.spec.resources", fmt.Sprintf("the pod as a whole asks for job.nextTryResources.max (%s) of %s or more, so nothing is raised", allowed, name))
	}
}

// has reports whether a resource has a request or a limit.
func has(r corev1.ResourceRequirements, name corev1.ResourceName) bool {
	_, requested := r.Requests[name]
	_, limited := r.Limits[name]
	return requested || limited
}
