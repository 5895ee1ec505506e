package engine

import (
	"fmt"

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
	for i, rule := range rules {
		if successRuleMet(f, rule) {
			return succeedIfSeen(f, reasonSuccessPolicy, fmt.Sprintf("Matched rules at index %d", i),
				fmt.Sprintf("rule met: the one at index %d; succeeded indexes: %d", i, f.tally.succeeded))
		}
	}
	return no(fmt.Sprintf("rules met: none of %d; succeeded indexes: %d", len(rules), f.tally.succeeded))
}

func successRuleMet(f facts, rule *jobpolicyv1.SuccessPolicyRule) bool {
	if rule.GetSucceededIndexes() == nil {
		return f.tally.succeededIndexes.Len() >= int64(rule.GetSucceededCount())
	}
	wanted := readSet(rule.GetSucceededIndexes()).Below(f.spec.GetCompletions())
	if wanted.Empty() {
		return false
	}
	have := wanted.Intersect(f.tally.succeededIndexes).Len()
	return have == wanted.Len() || (rule.SucceededCount != nil && have >= int64(rule.GetSucceededCount()))
}
