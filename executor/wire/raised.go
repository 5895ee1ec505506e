package wire

import (
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// raiseResources gives a pod more of a resource than its template says, and writes on the pod how
// often that was raised. It shares no changed memory with the template.
func raiseResources(pod *corev1.Pod, raised *jobpolicyv1.RaisedPods) {
	pod.Annotations[podcache.ResourceStepAnnotation] = strconv.Itoa(int(raised.GetStep()))
	name := corev1.ResourceMemory
	if raised.GetResource() == jobpolicyv1.RaisedResource_RAISED_RESOURCE_CPU {
		name = corev1.ResourceCPU
	}
	most, _ := resource.ParseQuantity(raised.GetMax()) // The decision was checked.
	raise := func(r *corev1.ResourceRequirements) { multiplyResource(r, name, raised.GetMultiplier(), most) }
	for _, containers := range []*[]corev1.Container{&pod.Spec.InitContainers, &pod.Spec.Containers} {
		*containers = slices.Clone(*containers)
		for i := range *containers {
			if c := &(*containers)[i]; raised.GetContainer() == "" || raised.GetContainer() == c.Name {
				raise(&c.Resources)
			}
		}
	}
	if pod.Spec.Resources != nil && raised.GetContainer() == "" {
		whole := *pod.Spec.Resources
		raise(&whole)
		pod.Spec.Resources = &whole
	}
}

// RaisesResources reports whether the option can give a container of the template, or the pod, more than the
// template says: its maximum is above what one of them asks for.
func RaisesResources(template *corev1.PodSpec, o *jobpolicyv1.NextTryResources) bool {
	pod := corev1.Pod{Spec: *template}
	pod.Annotations = map[string]string{}
	raiseResources(&pod, &jobpolicyv1.RaisedPods{Multiplier: math.MaxFloat64, Container: o.GetContainer(), Resource: o.GetResource(), Max: o.GetMax()})
	return !apiequality.Semantic.DeepEqual(&pod.Spec, template)
}

// multiplyResource multiplies the request and the limit of a resource by the same number, so that the quality
// of service class stays: by the multiplier, or by less, so that neither becomes more than most, but
// not by less than 1.
func multiplyResource(r *corev1.ResourceRequirements, name corev1.ResourceName, by float64, most resource.Quantity) {
	var highest float64
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		if q, set := list[name]; set {
			highest = max(highest, float64(q.MilliValue()))
		}
	}
	if highest <= 0 {
		return
	}
	by = max(1, min(by, float64(most.MilliValue())/highest))
	for _, list := range []*corev1.ResourceList{&r.Requests, &r.Limits} {
		if q, set := (*list)[name]; set {
			*list = maps.Clone(*list)
			(*list)[name] = multiply(q, name, by, most)
		}
	}
}

// multiply rounds memory to bytes and CPU to thousandths, and keeps the way in which the template writes
// the quantity.
func multiply(q resource.Quantity, name corev1.ResourceName, by float64, most resource.Quantity) resource.Quantity {
	switch {
	case by == 1:
		return q
	case name == corev1.ResourceCPU:
		n := int64(math.Round(float64(q.MilliValue()) * by))
		return *resource.NewMilliQuantity(min(n, most.MilliValue()), q.Format)
	}
	whole := most.Value() // Rounded up.
	if resource.NewQuantity(whole, most.Format).Cmp(most) > 0 {
		whole--
	}
	n := int64(math.Round(float64(q.Value()) * by))
	raised := resource.NewQuantity(min(n, whole), q.Format)
	if raised.Cmp(q) < 0 {
		return q // Parts of a byte.
	}
	return *raised
}
