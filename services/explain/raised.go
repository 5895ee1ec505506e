package explain

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// noteOnResources says what the next pods ask for, or names the pod that was raised most often, and what it asks for, if its Job's
// option nextTryResources gives pods more than the template says.
func (w *work) noteOnResources() {
	policy, _ := wire.PolicySpec(w.Job.Annotations)
	if o := policy.GetJob().GetNextTryResources(); o != nil && !wire.RaisesResources(&w.Job.Spec.Template.Spec, o) {
		return
	}
	if next := w.resp.GetCreate().GetRaised(); len(next) > 0 {
		most := next[len(next)-1]
		w.Report.Notes = append(w.Report.Notes, Note{"nextTryResources", fmt.Sprintf(
			"The next pods ask for up to %.4g times the %s of the template, at most %s, because pods before them failed.", most.GetMultiplier(), resourceName(most), most.GetMax())})
		return
	}
	var pods []*corev1.Pod
	for i := range w.Facts.Pods {
		if podcache.From(&w.Facts.Pods[i]).ResourceStep > 0 {
			pods = append(pods, &w.Facts.Pods[i])
		}
	}
	if len(pods) == 0 {
		return
	}
	pod := slices.MaxFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(podcache.From(a).ResourceStep, podcache.From(b).ResourceStep), cmp.Compare(b.Name, a.Name))
	})
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, t := range slices.Concat(w.Job.Spec.Template.Spec.InitContainers, w.Job.Spec.Template.Spec.Containers) {
			if now, before := raised(&c, &t); c.Name == t.Name && now != "" {
				w.Report.Notes = append(w.Report.Notes, Note{"nextTryResources", fmt.Sprintf(
					"Container %s of pod %s asks for %s, the template for %s: pods before it failed (annotation %s).", c.Name, pod.Name, now, before, podcache.ResourceStepAnnotation)})
				return
			}
		}
	}
}

func resourceName(raised *jobpolicyv1.RaisedPods) corev1.ResourceName {
	if raised.GetResource() == jobpolicyv1.RaisedResource_RAISED_RESOURCE_CPU {
		return corev1.ResourceCPU
	}
	return corev1.ResourceMemory
}

// raised are the resource of which a container asks for more than its template, and how much
// both ask for; empty if there is none.
func raised(c, template *corev1.Container) (now, before string) {
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU} {
		for _, lists := range [][2]corev1.ResourceList{{c.Resources.Limits, template.Resources.Limits}, {c.Resources.Requests, template.Resources.Requests}} {
			q, set := lists[0][name]
			if of, had := lists[1][name]; set && had && q.Cmp(of) > 0 {
				return q.String() + " of " + string(name), of.String()
			}
		}
	}
	return "", ""
}
