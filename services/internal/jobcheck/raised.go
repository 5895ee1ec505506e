package jobcheck

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/wire"
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
	case !wire.RaisesResources(pod, option):
		s.find(Warning, "template.spec.containers", fmt.Sprintf("job.nextTryResources.max (%s) is not above what the template asks for, so it raises nothing", option.GetMax()))
	}
}

// has reports whether a resource has a request or a limit.
func has(r corev1.ResourceRequirements, name corev1.ResourceName) bool {
	_, requested := r.Requests[name]
	_, limited := r.Limits[name]
	return requested || limited
}
