package jobspec

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

func setSuccessPolicy(d Source, s *batchv1.JobSpec) {
	s.SuccessPolicy = &batchv1.SuccessPolicy{}
	for range d.Between(1, 2) {
		s.SuccessPolicy.Rules = append(s.SuccessPolicy.Rules, d.successRule(*s.Completions))
	}
}

func (d Source) successRule(n int32) batchv1.SuccessPolicyRule {
	rule, most := batchv1.SuccessPolicyRule{}, n
	if d.Chance(60) {
		first := d.Between(0, n-1)
		last := d.Between(first, n-1)
		text := fmt.Sprintf("%d-%d", first, last)
		if first == last {
			text = fmt.Sprint(first)
		}
		rule.SucceededIndexes, most = &text, last-first+1
	}
	if rule.SucceededIndexes == nil || d.Chance(40) {
		rule.SucceededCount = new(d.Between(1, most))
	}
	return rule
}

var successValues = []Value{
	{"several rules", func(s *batchv1.JobSpec) bool { return s.SuccessPolicy != nil && len(s.SuccessPolicy.Rules) > 1 }},
	successRules("succeededIndexes", true, false),
	successRules("succeededCount", false, true),
	successRules("both", true, true),
}

// successRules is whether a rule has these of the two conditions.
func successRules(name string, indexes, count bool) Value {
	return Value{name, func(s *batchv1.JobSpec) bool {
		return s.SuccessPolicy != nil && slices.ContainsFunc(s.SuccessPolicy.Rules, func(rule batchv1.SuccessPolicyRule) bool {
			return (rule.SucceededIndexes != nil) == indexes && (rule.SucceededCount != nil) == count
		})
	}}
}

func setFailurePolicy(d Source, s *batchv1.JobSpec) {
	s.PodFailurePolicy = &batchv1.PodFailurePolicy{}
	for range d.Between(1, 3) {
		s.PodFailurePolicy.Rules = append(s.PodFailurePolicy.Rules, d.failureRule(s))
	}
}

func (d Source) failureRule(spec *batchv1.JobSpec) batchv1.PodFailurePolicyRule {
	rule := batchv1.PodFailurePolicyRule{Action: Pick(d, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore,
		batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount)}
	if spec.BackoffLimitPerIndex != nil && d.Chance(30) {
		rule.Action = batchv1.PodFailurePolicyActionFailIndex
	}
	if d.Chance(40) {
		rule.OnPodConditions = []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		return rule
	}
	rule.OnExitCodes = &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{Pick(d, Exits...)},
	}
	if d.Chance(30) {
		rule.OnExitCodes.Operator = batchv1.PodFailurePolicyOnExitCodesOpNotIn
	}
	if d.Chance(30) {
		rule.OnExitCodes.ContainerName = new(Pick(d, ContainerNames(spec)...))
	}
	return rule
}

// failureValues are the kinds of rules of a pod failure policy.
func failureValues() []Value {
	has := func(name string, is func(batchv1.PodFailurePolicyRule) bool) Value {
		return Value{name, func(s *batchv1.JobSpec) bool {
			return s.PodFailurePolicy != nil && slices.ContainsFunc(s.PodFailurePolicy.Rules, is)
		}}
	}
	values := []Value{
		{"several rules", func(s *batchv1.JobSpec) bool { return s.PodFailurePolicy != nil && len(s.PodFailurePolicy.Rules) > 1 }},
		has("containerName", func(r batchv1.PodFailurePolicyRule) bool {
			return r.OnExitCodes != nil && r.OnExitCodes.ContainerName != nil
		}),
	}
	for _, action := range []batchv1.PodFailurePolicyAction{"FailJob", "FailIndex", "Ignore", "Count"} {
		values = append(values, has(string(action)+" onPodConditions", func(r batchv1.PodFailurePolicyRule) bool {
			return r.Action == action && r.OnExitCodes == nil
		}))
		for _, operator := range []batchv1.PodFailurePolicyOnExitCodesOperator{"In", "NotIn"} {
			values = append(values, has(fmt.Sprintf("%s onExitCodes %s", action, operator), func(r batchv1.PodFailurePolicyRule) bool {
				return r.Action == action && r.OnExitCodes != nil && r.OnExitCodes.Operator == operator
			}))
		}
	}
	return values
}
