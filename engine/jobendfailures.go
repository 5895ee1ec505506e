package engine

import (
	"bytes"
	"slices"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// lastFailures are the pods that failed last, the newest first, as many as options.end_condition_failures says.
func (s *snapshot) lastFailures(t tally, v verdict) []*jobpolicyv1.EndFailure {
	most := int(s.spec.GetOptions().GetEndConditionFailures())
	if most == 0 {
		return nil
	}
	pods := failedPods(s, t)
	if v.rule == jobpolicyv1.Rule_RULE_POD_NEVER_STARTED {
		for _, u := range s.overdue(failJob) {
			pods = append(pods, u.failedPod())
		}
	}
	if v.rule == jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED && byRestarts(s, t) {
		pods = append(pods, restartedPods(s.req.GetActivePods().GetPods())...)
	}
	// A pod that was recorded as failed, and has succeeded since, counts as failed (I3), and nothing says how.
	pods = slices.DeleteFunc(pods, func(f failedPod) bool { return f.failure == nil })
	for i := range pods {
		pods[i].words = pods[i].text() // Once for each pod, however often it is compared.
	}
	slices.SortFunc(pods, func(a, b failedPod) int { return byFinish(b, a) })
	var told []failedPod
	for _, pod := range pods {
		if len(told) < most && !slices.ContainsFunc(told, pod.same) {
			told = append(told, pod)
		}
	}
	failures := make([]*jobpolicyv1.EndFailure, 0, len(told))
	for _, pod := range told {
		failures = append(failures, s.endFailure(pod))
	}
	return failures
}

// same reports whether two failures are of the same pod. The names of pods that exist at the same time differ; a caller that
// sends no names tells the same of a row as of the recent failure of its pod.
func (f failedPod) same(other failedPod) bool {
	if f.failure.GetPodName() != "" || other.failure.GetPodName() != "" {
		return f.failure.GetPodName() == other.failure.GetPodName()
	}
	return f.seconds == other.seconds && f.nanos == other.nanos && bytes.Equal(f.text(), other.text())
}

func (s *snapshot) endFailure(pod failedPod) *jobpolicyv1.EndFailure {
	var end jobpolicyv1.JobEnd
	s.describe(&end, pod)
	return &jobpolicyv1.EndFailure{
		PodName: end.GetPodName(), Index: end.Index, ContainerName: end.GetContainerName(),
		ExitCode: end.GetExitCode(), Signal: end.GetSignal(), Reason: end.GetReason(),
		TerminationMessage: jobend.LastLine(pod.toldExit().GetTerminationMessage()),
	}
}

// restartedPod is an active pod as one that failed when its container ended last before it was restarted.
func restartedPod(pod *jobpolicyv1.ActivePod) failedPod {
	at := pod.GetLastExitTime()
	return failedPod{
		failure: &jobpolicyv1.PodFailure{PodName: pod.GetPodName(), ContainerExits: []*jobpolicyv1.ContainerExit{pod.GetLastExit()}},
		index:   pod.Index, seconds: at.GetSeconds(), nanos: at.GetNanos(),
	}
}

func restartedPods(pods []*jobpolicyv1.ActivePod) []failedPod {
	var restarted []failedPod
	for _, pod := range pods {
		if pod.GetLastExit() != nil {
			restarted = append(restarted, restartedPod(pod))
		}
	}
	return restarted
}
