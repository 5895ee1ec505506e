// Package rules asks named rules in order until one decides. The list of rules is the
// specification of what decides first.
package rules

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// An Answer is what one rule answers.
type Answer interface {
	// Decides reports whether the rule decides, so that no further one is asked.
	Decides() bool
	// Detail says with which facts the rule decided, or why it did not.
	Detail() string
}

// A Rule is one named criterion. Ask asks it about facts.
type Rule[Facts any, A Answer] struct {
	Name jobpolicyv1.Rule
	Ask  func(Facts) A
}

// Asked is a rule that was asked, with its answer.
type Asked[A Answer] struct {
	Rule   jobpolicyv1.Rule
	Answer A
}

// Ask asks the rules, of which there is at least one, until one decides. The last answer
// is that of the deciding rule, if one decides.
func Ask[Facts any, A Answer](rules []Rule[Facts, A], facts Facts) (answers []Asked[A]) {
	for _, r := range rules {
		a := r.Ask(facts)
		answers = append(answers, Asked[A]{r.Name, a})
		if a.Decides() {
			break
		}
	}
	return answers
}

// Explain lists the answers, and names the rule that decided; UNSPECIFIED if none did.
func Explain[A Answer](answers []Asked[A]) (list []*jobpolicyv1.RuleAnswer, deciding jobpolicyv1.Rule) {
	for _, a := range answers {
		decides := a.Answer.Decides()
		list = append(list, &jobpolicyv1.RuleAnswer{Rule: a.Rule, Decided: decides, Detail: a.Answer.Detail()})
		if decides {
			deciding = a.Rule
		}
	}
	return list, deciding
}
