package engine

import (
	"fmt"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A policyMatch is the first rule of the pod failure policy that a failed pod
// matches. The zero value says that there is no policy or that no rule matched, so that
// the failure counts.
type policyMatch struct {
	action jobpolicyv1.PodFailurePolicyAction
	// rule is the position of the rule, where one matched.
	rule int
	// exit is the container whose exit matched; nil if none did.
	exit *jobpolicyv1.ContainerExit
	// cause says what matched, for the condition's message if the Job fails because of
	// it.
	cause string
}

// counts reports whether the failure counts towards the back-off limits.
func (m policyMatch) counts() bool {
	return m.action != jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE
}

// failsJob reports whether the failure fails the whole Job.
func (m policyMatch) failsJob() bool {
	return m.action == jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB
}

// failsIndex reports whether the failure fails the pod's index at once.
func (m policyMatch) failsIndex() bool {
	return m.action == jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX
}

// matched reports whether a rule matched.
func (m policyMatch) matched() bool {
	return m.action != jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_UNSPECIFIED
}

// A failurePolicy is a pod failure policy that is prepared for matching. The zero
// value has no rules.
type failurePolicy struct {
	rules []*jobpolicyv1.PodFailurePolicyRule
	// exitCodes are the values of each rule. They are sorted, because a request may hold
	// millions of exits to look up.
	exitCodes [][]int32
	// namespace is the namespace of the pods.
	namespace string
}

func readFailurePolicy(policy *jobpolicyv1.PodFailurePolicy, namespace string) failurePolicy {
	p := failurePolicy{rules: policy.GetRules(), namespace: namespace}
	for _, rule := range p.rules {
		p.exitCodes = append(p.exitCodes, slices.Sorted(slices.Values(rule.GetOnExitCodes().GetValues())))
	}
	return p
}

// match asks the rules in order. The texts are those of upstream v1.37
// (matchPodFailurePolicy); clients parse them.
func (p failurePolicy) match(f *jobpolicyv1.PodFailure) policyMatch {
	for i, rule := range p.rules {
		if exit, ok := matchExitCodes(rule.GetOnExitCodes(), p.exitCodes[i], f); ok {
			return policyMatch{rule.GetAction(), i, exit, fmt.Sprintf("Container %s for pod %s failed with exit code %d matching %s rule at index %d",
				exit.GetContainerName(), p.fullName(f), exit.GetExitCode(), actionName(rule.GetAction()), i)}
		}
		if condition, ok := matchConditions(rule.GetOnPodConditions(), f); ok {
			return policyMatch{rule.GetAction(), i, nil, fmt.Sprintf("Pod %s has condition %s matching %s rule at index %d",
				p.fullName(f), condition.GetType(), actionName(rule.GetAction()), i)}
		}
	}
	return policyMatch{}
}

// fullName is the pod's name with its namespace, if there are namespaces.
func (p failurePolicy) fullName(f *jobpolicyv1.PodFailure) string {
	if p.namespace == "" {
		return f.GetPodName()
	}
	return p.namespace + "/" + f.GetPodName()
}

// matchExitCodes finds the first container whose exit meets the requirement; codes are
// the requirement's values in ascending order.
func matchExitCodes(want *jobpolicyv1.ExitCodesRequirement, codes []int32, f *jobpolicyv1.PodFailure) (*jobpolicyv1.ContainerExit, bool) {
	if want == nil {
		return nil, false
	}
	in := want.GetOperator() == jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN
	for _, exit := range f.GetContainerExits() {
		if want.ContainerName != nil && want.GetContainerName() != exit.GetContainerName() {
			continue
		}
		if _, listed := slices.BinarySearch(codes, exit.GetExitCode()); listed == in {
			return exit, true
		}
	}
	return nil, false
}

func matchConditions(want []*jobpolicyv1.PodConditionPattern, f *jobpolicyv1.PodFailure) (*jobpolicyv1.PodConditionPattern, bool) {
	for _, have := range f.GetConditions() {
		for _, pattern := range want {
			if have.GetType() == pattern.GetType() && have.GetStatus() == pattern.GetStatus() {
				return have, true
			}
		}
	}
	return nil, false
}

// actionName is the action as the Kubernetes API spells it.
func actionName(action jobpolicyv1.PodFailurePolicyAction) string {
	switch action {
	case jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB:
		return "FailJob"
	case jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX:
		return "FailIndex"
	case jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE:
		return "Ignore"
	default:
		return "Count"
	}
}

// podFailurePolicyMatched: a failed pod matched a FailJob rule. The pod need
// not be counted yet, and its index need not be in range.
func podFailurePolicyMatched(f facts) answer {
	if f.spec.GetPodFailurePolicy() == nil {
		return no("the Job has no pod failure policy")
	}
	for _, r := range f.tally.rows {
		if r.failsJob() {
			return failure(reasonPodFailurePolicy, r.match.cause, r.match.cause).byPolicyRule(r.match.rule)
		}
	}
	return no("no failed pod matches a FailJob rule")
}

// failsJob reports whether the pod's failure fails the whole Job.
func (r podRow) failsJob() bool { return r.failed && r.match.failsJob() }
