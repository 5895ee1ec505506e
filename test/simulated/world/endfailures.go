package world

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// endFailures draws how many of the pods that failed last the condition tells that says how a Job failed.
func (d *drawer) endFailures(options map[string]any) {
	if d.chance(60) {
		options["endConditionFailures"] = pick(d, 1, 2, 3, 10)
	}
}

// sayLast lets each container that failed say something at its end.
func sayLast(pod *corev1.Pod) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if end := statuses[i].State.Terminated; end != nil && end.ExitCode != 0 {
				end.Message = "trying\n" + lastWords(pod, statuses[i].Name) + "\r\n\n"
			}
		}
	}
}

func lastWords(pod *corev1.Pod, container string) string {
	return sprint("container %q of %s: no more", container, pod.Name)
}

// toldFailures is how many failed pods a Job asks its condition to tell.
func toldFailures(job *batchv1.Job) int {
	policy, _ := wire.PolicySpec(job.Annotations)
	return int(policy.GetJob().GetEndConditionFailures())
}

// wrongFailures says what is wrong about the failed pods that a condition tells; empty if nothing: each is told once and as it is, the
// newest first, as many as were asked for, and none is left out that failed later.
func (j *judge) wrongFailures(w apiserver.Write, r *jobRecord, end *jobpolicyv1.JobEnd) string {
	most, told := toldFailures(r.job), end.GetFailures()
	if len(told) > most {
		return sprint("it tells %d failures of %d", len(told), most)
	}
	var pods []*podRecord
	for _, f := range told {
		p := j.podNamed(r, f.GetPodName())
		switch {
		case p == nil:
			return sprint("the Job has had no pod %s", f.GetPodName())
		case slices.Contains(pods, p):
			return sprint("it tells pod %s twice", f.GetPodName())
		case !p.saysAtItsEnd(f):
			return sprint("pod %s did not end in this way: %v", f.GetPodName(), f)
		}
		pods = append(pods, p)
	}
	for i := 1; i < len(pods); i++ {
		if a, b := pods[i-1], pods[i]; j.plainEnd(a) && j.plainEnd(b) && b.finished.After(a.saidToEnd) {
			return sprint("pod %s failed later than pod %s", b.key.Name, a.key.Name)
		}
	}
	for _, p := range r.ends {
		if most == 0 || slices.Contains(pods, p) || !p.failed() || !j.plainEnd(p) || !j.surelySeen(w, r, p) {
			continue
		}
		if len(pods) < most {
			return sprint("pod %s has failed, too", p.key.Name)
		}
		if last := pods[len(pods)-1]; j.plainEnd(last) && p.finished.After(last.saidToEnd) {
			return sprint("pod %s failed later than pod %s", p.key.Name, last.key.Name)
		}
	}
	return ""
}

// plainEnd reports whether there is only one answer to when the pod failed.
func (j *judge) plainEnd(p *podRecord) bool {
	return p.first != nil && p.deletedAt.IsZero() && !p.flipped && p.restarts == 0 && j.askew() == 0
}

// saysAtItsEnd reports whether a version of the pod shows the end that is told: the container, its exit code, and the last line
// of its message if the pod was made to keep it. Of a pod whose containers were restarted, what they said before is gone.
func (p *podRecord) saysAtItsEnd(f *jobpolicyv1.EndFailure) bool {
	if p.restarts > 0 || f.GetContainerName() == "" {
		return f.GetTerminationMessage() == "" || p.restarts > 0
	}
	for _, version := range []*corev1.Pod{p.first, p.version(), p.pod, p.running} {
		if version == nil {
			continue
		}
		for _, s := range slices.Concat(version.Status.ContainerStatuses, version.Status.InitContainerStatuses) {
			ended := s.State.Terminated
			if ended == nil || s.Name != f.GetContainerName() || ended.ExitCode != f.GetExitCode() || ended.Reason != f.GetReason() && version.Status.Reason != f.GetReason() {
				continue
			}
			want := ""
			if version.Annotations[podcache.KeepTerminationMessageAnnotation] == "true" && ended.Message != "" {
				want = lastWords(version, s.Name)
			}
			if f.GetTerminationMessage() == want {
				return true
			}
		}
	}
	return false
}
