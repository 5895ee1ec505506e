package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// A verdict is how a Job ends. publish.go decides whether it may be declared yet.
type verdict struct {
	kind            verdictKind
	reason, message string
	// rule is the rule that reached it.
	rule jobpolicyv1.Rule
	// policyRule is the position of the rule in the Job's pod failure policy or success
	// policy, if the Job ends by such a rule.
	policyRule *int32
}

type verdictKind int

const (
	undecided verdictKind = iota
	succeeds
	fails
)

func (v verdict) reached() bool { return v.kind != undecided }

// facts are the input of the rules.
type facts struct {
	*snapshot
	tally tally
}

// An answer is the answer of one rule: a verdict, or why there is none.
type answer struct {
	verdict verdict
	detail  string
}

func no(detail string) answer { return answer{detail: detail} }

// failure and success reach a verdict. Its message is upstream's; the detail
// adds the numbers that were compared.
func failure(reason, message, detail string) answer {
	return answer{verdict{kind: fails, reason: reason, message: message}, detail}
}

func success(reason, message, detail string) answer {
	return answer{verdict{kind: succeeds, reason: reason, message: message}, detail}
}

// byPolicyRule adds the rule of a policy by which the verdict was reached, if there
// is a verdict.
func (a answer) byPolicyRule(i int) answer {
	if a.verdict.reached() {
		index := int32(i)
		a.verdict.policyRule = &index
	}
	return a
}

// A rule is one named criterion by which a Job ends.
type rule struct {
	name jobpolicyv1.Rule
	ask  func(facts) answer
}

// verdictRules returns the rules in the order in which they are asked; the first
// verdict wins. This order is the specification. It is upstream's (syncJob, v1.37):
// what was declared before, then failure, then success. unlisted.go says how rules
// treat pods that the request does not list.
func verdictRules() []rule {
	return []rule{
		{jobpolicyv1.Rule_RULE_SUCCESS_ALREADY_DECLARED, successAlreadyDeclared},
		{jobpolicyv1.Rule_RULE_FAILURE_ALREADY_DECLARED, failureAlreadyDeclared},
		{jobpolicyv1.Rule_RULE_POD_FAILURE_POLICY_MATCHED, podFailurePolicyMatched},
		{jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED, backoffLimitExceeded},
		{jobpolicyv1.Rule_RULE_DEADLINE_PASSED, deadlinePassed},
		{jobpolicyv1.Rule_RULE_TOO_MANY_FAILED_INDEXES, tooManyFailedIndexes},
		{jobpolicyv1.Rule_RULE_ALL_INDEXES_FINISHED_SOME_FAILED, allIndexesFinishedSomeFailed},
		{jobpolicyv1.Rule_RULE_SUCCESS_POLICY_MET, successPolicyMet},
		{jobpolicyv1.Rule_RULE_COMPLETIONS_REACHED, completionsReached},
	}
}

// RuleNames lists the rules in the order in which they are asked, by the names
// that metrics, traces and documents give them (Rule in the contract).
func RuleNames() []string {
	rules := verdictRules()
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name.Name()
	}
	return names
}

// asked is a rule that was asked, with its answer.
type asked struct {
	rule   jobpolicyv1.Rule
	answer answer
}

// askRules asks the rules until one reaches a verdict.
func askRules(f facts) (verdict, []asked) {
	var answers []asked
	for _, r := range verdictRules() {
		a := r.ask(f)
		a.verdict.rule = r.name
		answers = append(answers, asked{r.name, a})
		if a.verdict.reached() {
			return a.verdict, answers
		}
	}
	return verdict{}, answers
}
