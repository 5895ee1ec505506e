package engine_test

import (
	"testing"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A condition that is false declares nothing.
func TestFalseConditionsDeclareNothing(t *testing.T) {
	s := newScene()
	s.mustTell(t, undecidedJob+"\ncondition SuccessCriteriaMet status=False\ncondition FailureTarget status=False")
	if rule := decide(t, s.req).GetExplanation().GetDecidingRule(); rule != jobpolicyv1.Rule_RULE_UNSPECIFIED {
		t.Errorf("%s decides", rule.Name())
	}
}

// The engine lists each capability of the contract once, also the one of a field that was
// added last.
func TestEachCapabilityIsListedOnce(t *testing.T) {
	seen := map[jobpolicyv1.Capability]bool{}
	for _, c := range engine.Capabilities() {
		if _, known := jobpolicyv1.Capability_name[int32(c)]; !known || c == 0 || seen[c] {
			t.Errorf("capability %v is unknown, unspecified or listed twice", c)
		}
		seen[c] = true
	}
	for c, name := range jobpolicyv1.Capability_name {
		if c != 0 && !seen[jobpolicyv1.Capability(c)] {
			t.Errorf("the engine does not list %s", name)
		}
	}
}
