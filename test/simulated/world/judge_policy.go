package world

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// policyAction is what the Job's pod failure policy says of a pod that failed;
// empty if no rule matches. The first rule that matches decides.
func policyAction(job *batchv1.Job, pod *corev1.Pod) batchv1.PodFailurePolicyAction {
	if job.Spec.PodFailurePolicy == nil {
		return ""
	}
	for i := range job.Spec.PodFailurePolicy.Rules {
		rule := &job.Spec.PodFailurePolicy.Rules[i]
		if matchesExit(rule.OnExitCodes, pod) || matchesCondition(rule.OnPodConditions, pod) {
			return rule.Action
		}
	}
	return ""
}

// matchesExit reports whether a container ended with an exit code other than 0 that the
// requirement matches.
func matchesExit(want *batchv1.PodFailurePolicyOnExitCodesRequirement, pod *corev1.Pod) bool {
	if want == nil {
		return false
	}
	matches := func(s corev1.ContainerStatus) bool {
		end := s.State.Terminated
		if end == nil || end.ExitCode == 0 || (want.ContainerName != nil && *want.ContainerName != s.Name) {
			return false
		}
		return slices.Contains(want.Values, end.ExitCode) == (want.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn)
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, matches) || slices.ContainsFunc(pod.Status.InitContainerStatuses, matches)
}

func matchesCondition(want []batchv1.PodFailurePolicyOnPodConditionsPattern, pod *corev1.Pod) bool {
	return slices.ContainsFunc(want, func(pattern batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == pattern.Type && c.Status == pattern.Status
		})
	})
}

// fails reports whether a pod's failure counts towards the limits.
func (r *jobRecord) fails(p *podRecord) bool {
	return !p.succeeded() && policyAction(r.job, p.version()) != batchv1.PodFailurePolicyActionIgnore
}

// mayFail also includes a pod that was being deleted before it succeeded: an executor that
// saw the deletion, but not the end, counts the pod as failed.
func (r *jobRecord) mayFail(p *podRecord) bool { return r.fails(p) || (p.succeeded() && p.dueBefore) }
