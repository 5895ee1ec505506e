package engine

import (
	"jobpolicy.dev/engine/internal/rules"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

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

// Decides and Detail make an answer one of package rules.
func (a answer) Decides() bool  { return a.verdict.reached() }
func (a answer) Detail() string { return a.detail }

// asked is a rule that was asked, with its answer.
type asked = rules.Asked[answer]

// verdictRules returns the rules in the order in which they are asked; the first
// verdict wins. This order is the specification. It is upstream's (syncJob, v1.37):
// what was declared before, then failure, then success; startDeadlinePassed and podNeverStarted are ours. unlisted.go says how rules
// treat pods that the request does not list.
func verdictRules() []rules.Rule[facts, answer] {
	return []rules.Rule[facts, answer]{
		{Name: jobpolicyv1.Rule_RULE_SUCCESS_ALREADY_DECLARED, Ask: successAlreadyDeclared},
		{Name: jobpolicyv1.Rule_RULE_FAILURE_ALREADY_DECLARED, Ask: failureAlreadyDeclared},
		{Name: jobpolicyv1.Rule_RULE_POD_FAILURE_POLICY_MATCHED, Ask: podFailurePolicyMatched},
		{Name: jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED, Ask: backoffLimitExceeded},
		{Name: jobpolicyv1.Rule_RULE_DEADLINE_PASSED, Ask: deadlinePassed},
		{Name: jobpolicyv1.Rule_RULE_START_DEADLINE_PASSED, Ask: startDeadlinePassed},
		{Name: jobpolicyv1.Rule_RULE_POD_NEVER_STARTED, Ask: podNeverStarted},
		{Name: jobpolicyv1.Rule_RULE_TOO_MANY_FAILED_INDEXES, Ask: tooManyFailedIndexes},
		{Name: jobpolicyv1.Rule_RULE_ALL_INDEXES_FINISHED_SOME_FAILED, Ask: allIndexesFinishedSomeFailed},
		{Name: jobpolicyv1.Rule_RULE_SUCCESS_POLICY_MET, Ask: successPolicyMet},
		{Name: jobpolicyv1.Rule_RULE_COMPLETIONS_REACHED, Ask: completionsReached},
	}
}

// askRules asks the rules until one reaches a verdict.
func askRules(f facts) (verdict, []asked) {
	answers := rules.Ask(verdictRules(), f)
	last := answers[len(answers)-1]
	v := last.Answer.verdict
	if v.reached() {
		v.rule = last.Rule
	}
	return v, answers
}
