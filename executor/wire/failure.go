package wire

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract on how one pod failed. A value above them makes the whole request
// invalid, and the Job would never be decided on again.
const (
	maxContainerExits     = 1000
	maxPodConditions      = 100
	maxContainerNameBytes = 253
)

// PodFailure says how a pod failed, limited to what the policy's rules ask for:
// anybody who may write a pod's status can put any number of conditions there.
func PodFailure(pod *podcache.Pod, policy *batchv1.PodFailurePolicy) *jobpolicyv1.PodFailure {
	f := &jobpolicyv1.PodFailure{PodName: pod.Name}
	for i := range pod.Exits {
		f.ContainerExits = appendExit(f.ContainerExits, &pod.Exits[i], policy)
	}
	pod.EachCondition(func(c podcache.Condition) { f.Conditions = appendCondition(f.Conditions, c, policy) })
	return f
}

// disruption is the condition of a pod that was ended for reasons that are not its own. A
// disruption that is ignored does not delay the next pod.
var disruption = batchv1.PodFailurePolicyOnPodConditionsPattern{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}

// appendCondition appends a condition if a rule names it, or if it is a disruption.
func appendCondition(conditions []*jobpolicyv1.PodConditionPattern, c podcache.Condition, policy *batchv1.PodFailurePolicy) []*jobpolicyv1.PodConditionPattern {
	status := conditionStatuses[c.Status]
	named := disruption.Type == c.Type && disruption.Status == c.Status || slices.ContainsFunc(policy.Rules, func(rule batchv1.PodFailurePolicyRule) bool {
		return slices.ContainsFunc(rule.OnPodConditions, func(p batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
			return p.Type == c.Type && cmp.Or(p.Status, defaultPatternStatus) == c.Status
		})
	})
	listed := slices.ContainsFunc(conditions, func(m *jobpolicyv1.PodConditionPattern) bool {
		return m.Type == string(c.Type) && m.Status == status
	})
	if !named || listed || status == 0 || len(conditions) == maxPodConditions {
		return conditions
	}
	return append(conditions, &jobpolicyv1.PodConditionPattern{Type: string(c.Type), Status: status})
}

// appendExit appends the exit of a failed container if a rule may match it: a rule names
// the container, or a rule names none and the exit code is not listed yet.
func appendExit(exits []*jobpolicyv1.ContainerExit, failed *podcache.Exit, policy *batchv1.PodFailurePolicy) []*jobpolicyv1.ContainerExit {
	if len(exits) == maxContainerExits {
		return exits
	}
	byName, byAny := asksForExits(policy, failed.Container)
	sameCode := func(m *jobpolicyv1.ContainerExit) bool { return m.ExitCode == failed.Code }
	if !byName && (!byAny || slices.ContainsFunc(exits, sameCode)) {
		return exits
	}
	return append(exits, &jobpolicyv1.ContainerExit{
		ContainerName: Text(failed.Container, maxContainerNameBytes), ExitCode: failed.Code,
	})
}

// asksForExits reports whether a rule on exit codes names the container, and
// whether one names none.
func asksForExits(policy *batchv1.PodFailurePolicy, container string) (byName, byAny bool) {
	for i := range policy.Rules {
		on := policy.Rules[i].OnExitCodes
		if on == nil {
			continue
		}
		byAny = byAny || on.ContainerName == nil
		byName = byName || (on.ContainerName != nil && *on.ContainerName == container)
	}
	return byName, byAny
}
