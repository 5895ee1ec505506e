package engine

import (
	"fmt"
	"slices"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// successPolicyMet: the succeeded indexes satisfy a rule of the success policy.
// Rules are asked in order; the first that is met is named.
func successPolicyMet(f facts) answer {
	rules := f.spec.GetSuccessPolicy().GetRules()
	if len(rules) == 0 {
		return no("the Job has no success policy")
	}
	if f.tally.succeededIndexes.Empty() {
		return no("no index succeeded yet")
	}
	if i, met := metSuccessRule(f.spec.GetSuccessPolicy(), f.tally.succeededIndexes, f.spec.GetCompletions()); met {
		return succeedIfSeen(f, reasonSuccessPolicy, metRuleText(i),
			fmt.Sprintf("rule met: the one at index %d; succeeded indexes: %d", i, f.tally.succeeded)).byPolicyRule(i)
	}
	return no(fmt.Sprintf("rules met: none of %d; succeeded indexes: %d", len(rules), f.tally.succeeded))
}

// metSuccessRule finds the first rule that is met by succeeded indexes, which are
// below completions. If no index succeeded, no rule is met.
func metSuccessRule(policy *jobpolicyv1.SuccessPolicy, succeeded indexset.Set, completions int32) (i int, met bool) {
	if succeeded.Empty() {
		return 0, false
	}
	i = slices.IndexFunc(policy.GetRules(), func(rule *jobpolicyv1.SuccessPolicyRule) bool {
		return successRuleMet(rule, succeeded, completions)
	})
	return i, i >= 0
}

func successRuleMet(rule *jobpolicyv1.SuccessPolicyRule, succeeded indexset.Set, completions int32) bool {
	if rule.GetSucceededIndexes() == nil {
		return succeeded.Len() >= int64(rule.GetSucceededCount())
	}
	wanted := readSet(rule.GetSucceededIndexes()).Below(completions)
	if wanted.Empty() {
		return false
	}
	have := wanted.Intersect(succeeded).Len()
	return have == wanted.Len() || (rule.SucceededCount != nil && have >= int64(rule.GetSucceededCount()))
}

// metRuleText is upstream's text (matchSuccessPolicy, v1.37).
func metRuleText(i int) string { return fmt.Sprintf("Matched rules at index %d", i) }
