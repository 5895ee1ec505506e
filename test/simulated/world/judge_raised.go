package world

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// judgeRaised: a new pod has as much memory as the failed pods that the executor must know demand, and
// no more than any failed pod does. Its annotation says so, too.
func (j *judge) judgeRaised(w apiserver.Write, r *jobRecord, pod *corev1.Pod) {
	policy, _ := wire.PolicySpec(r.job.Annotations)
	option := policy.GetJob().GetNextTryResources()
	step := stepOf(pod)
	if option == nil {
		if step != 0 {
			j.breach("options", r.key, r.uid, "%s created pod %s with step %d, and nobody asks for more resources", w.By, w.Key.Name, step)
		}
		return
	}
	least, most := j.demandedSteps(w, r, pod, option)
	if step < least || step > most {
		j.breach("options", r.key, r.uid, "%s created pod %s with step %d, and the failed pods demand %d to %d", w.By, w.Key.Name, step, least, most)
	}
	want := resource.MustParse(leastMemory)
	for range step {
		want.Add(want)
	}
	if limit := resource.MustParse(mostMemory); want.Cmp(limit) > 0 {
		want = limit
	}
	for i := range pod.Spec.Containers {
		if got := pod.Spec.Containers[i].Resources.Limits.Memory(); got.Cmp(want) != 0 {
			j.breach("options", r.key, r.uid, "%s created pod %s with %s of memory, and step %d means %s", w.By, w.Key.Name, got, step, &want)
		}
	}
}

// demandedSteps are the lowest and the highest step that a new pod may have.
func (j *judge) demandedSteps(w apiserver.Write, r *jobRecord, pod *corev1.Pod, option *jobpolicyv1.NextTryResources) (least, most int) {
	for _, p := range j.pods {
		if p.uid == pod.UID || p.job != r && !r.had(p) || ledger.IsIndexed(r.job) && podIndex(p.pod) != podIndex(pod) {
			continue
		}
		high := stepOf(p.pod)
		if slices.ContainsFunc([]*corev1.Pod{p.first, p.pod}, func(version *corev1.Pod) bool { return raisesNext(version, option) }) {
			high++
		}
		most = max(most, high)
		if j.mustKnowTry(w, r, p) {
			least = max(least, high)
		}
	}
	return least, most
}

// mustKnowTry reports whether the executor must know how a pod failed, and there is no doubt about it. The
// pod is still there, so a restart is no excuse.
func (j *judge) mustKnowTry(w apiserver.Write, r *jobRecord, p *podRecord) bool {
	return p.failed() && !p.flipped && !p.gone && p.job == r && p.former == nil && p.revivals == 0 && p.deletedAt.IsZero() &&
		p.strayAt.IsZero() && j.knows(w.By, p.endedAt) && j.shownOf(r, p, w.By) && inRange(r.job, p.pod)
}

// raisesNext reports whether this version of a pod shows a failure that raises the resources of the next one.
func raisesNext(pod *corev1.Pod, option *jobpolicyv1.NextTryResources) bool {
	if pod == nil || pod.Status.Phase != corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		end := s.State.Terminated
		return end != nil && end.ExitCode != 0 && (end.Reason == "OOMKilled" || slices.Contains(option.GetOnExitCodes(), end.ExitCode))
	})
}

// stepOf is how often the resources of a pod had been raised.
func stepOf(pod *corev1.Pod) int {
	step, _ := strconv.Atoi(pod.Annotations[podcache.ResourceStepAnnotation])
	return step
}
