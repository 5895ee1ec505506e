package podfacts

import (
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract on how one pod failed.
const (
	maxContainerExits = 1000
	maxConditions     = 100
)

// disruption is the condition of a pod that was ended for a reason outside of the
// pod. A disruption that the policy ignores does not delay the next pod.
const disruption = "DisruptionTarget"

// outOfMemory is the reason of a container that was killed because it needed more memory than it
// may use.
const outOfMemory = "OOMKilled"

// failure holds the facts about a failed pod that the pod failure policy reads, and those
// that say how the Job ended. Anybody who may write a pod's status can put any number of conditions
// there, so it holds nothing else.
func (p *Policy) failure(pod *Pod) *jobpolicyv1.PodFailure {
	policy := p.Failures
	f := &jobpolicyv1.PodFailure{PodName: pod.Name, Reason: pod.Reason, DeletedBeforeEnd: pod.deletedBeforeEnd(), NeverRan: pod.Reason != "" && !pod.HasRun, ResourceStep: max(0, min(pod.ResourceStep, MaxResourceStep))}
	if p.Starts {
		f.Start = pod.Start
	}
	decisive := decisiveExit(pod.Exits)
	for i, exit := range pod.Exits {
		if len(f.ContainerExits) < maxContainerExits && (i == decisive || exitMatters(policy, f.ContainerExits, exit)) {
			f.ContainerExits = append(f.ContainerExits, exit)
		}
	}
	for _, condition := range pod.Conditions {
		listed := slices.ContainsFunc(f.Conditions, func(m *jobpolicyv1.PodConditionPattern) bool { return same(m, condition) })
		if !listed && len(f.Conditions) < maxConditions && conditionMatters(policy, condition) {
			f.Conditions = append(f.Conditions, condition)
		}
	}
	return f
}

// decisiveExit is the position of the exit that says why the pod failed (JobEnd.container_name).
func decisiveExit(exits []*jobpolicyv1.ContainerExit) int {
	return max(0, slices.IndexFunc(exits, func(exit *jobpolicyv1.ContainerExit) bool { return exit.GetReason() == outOfMemory }))
}

// exitMatters reports whether a rule may match the exit but none of the exits before
// it. A rule that names no container looks only at the code.
func exitMatters(policy *jobpolicyv1.PodFailurePolicy, before []*jobpolicyv1.ContainerExit, exit *jobpolicyv1.ContainerExit) bool {
	sameCode := func(m *jobpolicyv1.ContainerExit) bool { return m.GetExitCode() == exit.GetExitCode() }
	byAny := false
	for _, rule := range policy.GetRules() {
		on := rule.GetOnExitCodes()
		switch {
		case on == nil:
		case on.ContainerName == nil:
			byAny = true
		case on.GetContainerName() == exit.GetContainerName():
			return true
		}
	}
	return byAny && !slices.ContainsFunc(before, sameCode)
}

// conditionMatters reports whether a rule names the condition, or whether the
// condition is a disruption.
func conditionMatters(policy *jobpolicyv1.PodFailurePolicy, condition *jobpolicyv1.PodConditionPattern) bool {
	if condition.GetType() == disruption && condition.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE {
		return true
	}
	return slices.ContainsFunc(policy.GetRules(), func(rule *jobpolicyv1.PodFailurePolicyRule) bool {
		return slices.ContainsFunc(rule.GetOnPodConditions(), func(m *jobpolicyv1.PodConditionPattern) bool { return same(m, condition) })
	})
}

func same(a, b *jobpolicyv1.PodConditionPattern) bool {
	return a.GetType() == b.GetType() && a.GetStatus() == b.GetStatus()
}
