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
//
// If the pod has resources of its own, the API server wants the containers' requests within its
// request, and the limit of each container within its limit. So all of them are multiplied by the
// same number, also if only one container is to be raised.
func raiseResources(pod *corev1.Pod, raised *jobpolicyv1.RaisedPods) {
	pod.Annotations[podcache.ResourceStepAnnotation] = strconv.Itoa(int(raised.GetStep()))
	name := corev1.ResourceMemory
	if raised.GetResource() == jobpolicyv1.RaisedResource_RAISED_RESOURCE_CPU {
		name = corev1.ResourceCPU
	}
	most, _ := resource.ParseQuantity(raised.GetMax()) // The decision was checked.
	containers := ownResources(pod, raised.GetContainer())
	if whole := pod.Spec.Resources; whole == nil || !sets(whole, name) {
		for _, r := range containers {
			raising{name, bounded(raised.GetMultiplier(), largest(name, r), most), most, math.Round}.multiplyResource(r)
		}
		return
	}
	whole := *pod.Spec.Resources
	pod.Spec.Resources = &whole
	by := bounded(raised.GetMultiplier(), largest(name, append(containers, &whole)...), most)
	raising{name, by, most, math.Ceil}.multiplyResource(&whole)
	for _, r := range containers {
		raising{name, by, most, math.Floor}.multiplyResource(r)
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

func sets(r *corev1.ResourceRequirements, name corev1.ResourceName) bool {
	_, requested := r.Requests[name]
	_, limited := r.Limits[name]
	return requested || limited
}

// ownResources gives the pod its own copies of its containers, and returns the resources of those
// with a name, of all if it is empty.
func ownResources(pod *corev1.Pod, name string) []*corev1.ResourceRequirements {
	var own []*corev1.ResourceRequirements
	for _, containers := range []*[]corev1.Container{&pod.Spec.InitContainers, &pod.Spec.Containers} {
		*containers = slices.Clone(*containers)
		for i := range *containers {
			if c := &(*containers)[i]; name == "" || name == c.Name {
				own = append(own, &c.Resources)
			}
		}
	}
	return own
}

// largest is the largest request or limit of a resource; 0 if there is none.
func largest(name corev1.ResourceName, among ...*corev1.ResourceRequirements) resource.Quantity {
	var most resource.Quantity
	for _, r := range among {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			if q := list[name]; q.Cmp(most) > 0 {
				most = q
			}
		}
	}
	return most
}

// bounded is the multiplier, or less, so that the largest quantity becomes at most as much as most, but
// at least 1.
func bounded(by float64, largest, most resource.Quantity) float64 {
	if largest.IsZero() {
		return 1
	}
	return max(1, min(by, float64(most.MilliValue())/float64(largest.MilliValue())))
}

// A raising multiplies a resource and rounds it, to no more than most.
type raising struct {
	name  corev1.ResourceName
	by    float64
	most  resource.Quantity
	round func(float64) float64
}

// multiplyResource multiplies the request and the limit by the same number, so that the quality of
// service class stays.
func (m raising) multiplyResource(r *corev1.ResourceRequirements) {
	for _, list := range []*corev1.ResourceList{&r.Requests, &r.Limits} {
		if q, set := (*list)[m.name]; set {
			*list = maps.Clone(*list)
			(*list)[m.name] = m.multiply(q)
		}
	}
}

// multiply rounds memory to bytes and CPU to thousandths, and keeps the way in which the template writes
// the quantity.
func (m raising) multiply(q resource.Quantity) resource.Quantity {
	switch {
	case m.by == 1:
		return q
	case m.name == corev1.ResourceCPU:
		n := int64(m.round(float64(q.MilliValue()) * m.by))
		return *resource.NewMilliQuantity(min(n, m.most.MilliValue()), q.Format)
	}
	whole := m.most.Value() // Rounded up.
	if resource.NewQuantity(whole, m.most.Format).Cmp(m.most) > 0 {
		whole--
	}
	n := int64(m.round(q.AsApproximateFloat64() * m.by))
	raised := resource.NewQuantity(min(n, whole), q.Format)
	if raised.Cmp(q) < 0 {
		return q // Parts of a byte.
	}
	return *raised
}
