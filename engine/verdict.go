package engine

// A verdict is how a Job ends. Whether it may be declared yet is a different
// question: see publish.go.
type verdict struct {
	kind            verdictKind
	reason, message string
	// rule is the name of the rule that reached it.
	rule string
	// policyRule is the position of the rule in the Job's pod failure policy or
	// success policy, if it is one of these by which the Job ends.
	policyRule *int32
}

type verdictKind int

const (
	undecided verdictKind = iota
	succeeds
	fails
)

func (v verdict) reached() bool { return v.kind != undecided }

// facts are what the rules look at.
type facts struct {
	*snapshot
	tally tally
}

// An answer is what one rule says: a verdict, or why not.
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

// byPolicyRule says by which rule of a policy a verdict was reached, if it was.
func (a answer) byPolicyRule(i int) answer {
	if a.verdict.reached() {
		index := int32(i)
		a.verdict.policyRule = &index
	}
	return a
}

// A rule is one named criterion by which a Job ends.
type rule struct {
	name string
	ask  func(facts) answer
}

// verdictRules returns the rules in the order in which they are asked; the
// first verdict stands. This order is the specification. It is upstream's
// (syncJob, v1.36): what was declared before, then failure, then success. What a
// rule makes of pods that the request does not list stands in unlisted.go.
func verdictRules() []rule {
	return []rule{
		{"successAlreadyDeclared", successAlreadyDeclared},             // SuccessCriteriaMet was written before.
		{"failureAlreadyDeclared", failureAlreadyDeclared},             // FailureTarget was written before.
		{"podFailurePolicyMatched", podFailurePolicyMatched},           // A pod failed in a way that fails the Job.
		{"backoffLimitExceeded", backoffLimitExceeded},                 // Too many pods failed, or containers restarted.
		{"deadlinePassed", deadlinePassed},                             // The Job was active for too long.
		{"tooManyFailedIndexes", tooManyFailedIndexes},                 // More indexes failed than allowed.
		{"allIndexesFinishedSomeFailed", allIndexesFinishedSomeFailed}, // Nothing left to run, not all succeeded.
		{"successPolicyMet", successPolicyMet},                         // Enough succeeded by the Job's own measure.
		{"completionsReached", completionsReached},                     // As many succeeded as were asked for.
	}
}

// RuleNames lists the rules in the order in which they are asked. The names
// appear in Verdict.rule, Explanation.rules and Explanation.deciding_rule.
func RuleNames() []string {
	rules := verdictRules()
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// An asked rule is one that was asked, with its answer.
type asked struct {
	rule   string
	answer answer
}

// judge asks the rules until one reaches a verdict.
func judge(f facts) (verdict, []asked) {
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
