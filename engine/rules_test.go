package engine_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The order of the rules is the specification. Changing it changes how Jobs
// end; the names are part of the contract.
func TestRuleNames(t *testing.T) {
	want := []string{
		"successAlreadyDeclared",
		"failureAlreadyDeclared",
		"podFailurePolicyMatched",
		"backoffLimitExceeded",
		"deadlinePassed",
		"tooManyFailedIndexes",
		"allIndexesFinishedSomeFailed",
		"successPolicyMet",
		"completionsReached",
	}
	if diff := cmp.Diff(want, engine.RuleNames()); diff != "" {
		t.Errorf("RuleNames() (-want +got):\n%s", diff)
	}
}

// contested is a Job for which every rule but the first two reaches a verdict: index 0 has
// succeeded, index 1 has failed and may not be retried, its exit code fails the Job, and the
// deadline has passed.
const contested = `job completions=2 parallelism=2 mode=Indexed backoffLimit=0 backoffLimitPerIndex=0 maxFailedIndexes=0 activeDeadlineSeconds=5
failureRule action=FailJob in=42
successRule indexes=0
now 10s
status start=0s
finished s phase=Succeeded index=0
finished f phase=Failed index=1 exit=main:42`

// contests change the contested Job, first by change and then by the lines of more, so that
// the next rule of the list decides.
var contests = map[string]struct {
	change     func(*scene)
	more       string
	wantRule   string
	wantReason string
}{
	"a declared success beats everything": {
		more:     "condition SuccessCriteriaMet reason=Declared",
		wantRule: "successAlreadyDeclared", wantReason: "Declared",
	},
	"a declared failure beats every later rule": {
		more:     "condition FailureTarget reason=Declared",
		wantRule: "failureAlreadyDeclared", wantReason: "Declared",
	},
	"a condition that is false declares nothing": {
		more:     "condition SuccessCriteriaMet status=False reason=Declared",
		wantRule: "podFailurePolicyMatched", wantReason: "PodFailurePolicy",
	},
	"the pod failure policy beats the limits": {
		wantRule: "podFailurePolicyMatched", wantReason: "PodFailurePolicy",
	},
	"backoffLimit beats the deadline": {
		change:   func(s *scene) { s.req.Spec.PodFailurePolicy = nil },
		wantRule: "backoffLimitExceeded", wantReason: "BackoffLimitExceeded",
	},
	"the deadline beats the limits on indexes": {
		change: func(s *scene) {
			s.req.Spec.PodFailurePolicy = nil
		},
		more:     "spec backoffLimit=1",
		wantRule: "deadlinePassed", wantReason: "DeadlineExceeded",
	},
	"too many failed indexes beats all indexes finished": {
		change: func(s *scene) {
			s.req.Spec.PodFailurePolicy = nil
			s.req.Spec.ActiveDeadlineSeconds = nil
		},
		more:     "spec backoffLimit=1",
		wantRule: "tooManyFailedIndexes", wantReason: "MaxFailedIndexesExceeded",
	},
	"failed indexes beat the success policy": {
		change: func(s *scene) {
			s.req.Spec.PodFailurePolicy = nil
			s.req.Spec.ActiveDeadlineSeconds = nil
			s.req.Spec.MaxFailedIndexes = nil
		},
		more:     "spec backoffLimit=1",
		wantRule: "allIndexesFinishedSomeFailed", wantReason: "FailedIndexes",
	},
	"the success policy beats completions": {
		change: func(s *scene) {
			s.req.Spec.PodFailurePolicy = nil
			s.req.Spec.ActiveDeadlineSeconds = nil
			s.req.UnaccountedPods[1].Phase = jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
		},
		wantRule: "successPolicyMet", wantReason: "SuccessPolicy",
	},
	"completions come last": {
		change: func(s *scene) {
			s.req.Spec.PodFailurePolicy = nil
			s.req.Spec.ActiveDeadlineSeconds = nil
			s.req.Spec.SuccessPolicy = nil
			s.req.UnaccountedPods[1].Phase = jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
		},
		wantRule: "completionsReached", wantReason: "CompletionsReached",
	},
}

func TestRulesDecideInOrder(t *testing.T) {
	for name, tc := range contests {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.mustTell(t, contested)
			if tc.change != nil {
				tc.change(s)
			}
			s.mustTell(t, tc.more)
			resp, err := engine.DecideJob(s.req)
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.GetExplanation().GetDecidingRule().Name(); got != tc.wantRule {
				t.Errorf("deciding rule = %s, want %s", got, tc.wantRule)
			}
			if got := lastReason(resp.GetStatus()); got != tc.wantReason {
				t.Errorf("reason = %s, want %s", got, tc.wantReason)
			}
			assertAskedUntil(t, resp.GetExplanation(), tc.wantRule)
		})
	}
}

// assertAskedUntil wants the rules up to the deciding one to have been asked, and the others
// to say why they did not decide.
func assertAskedUntil(t *testing.T, explanation *jobpolicyv1.Explanation, deciding string) {
	t.Helper()
	names := engine.RuleNames()
	want := names[:slices.Index(names, deciding)+1]
	var asked []string
	for _, answer := range explanation.GetRules() {
		name := answer.GetRule().Name()
		asked = append(asked, name)
		if answer.GetDetail() == "" && name != deciding {
			t.Errorf("rule %s does not say why it did not decide", name)
		}
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("rules asked (-want +got):\n%s", diff)
	}
}

// lastReason is the reason of the interim condition that was written last.
func lastReason(status *jobpolicyv1.JobStatus) string {
	reason := ""
	for _, c := range status.GetConditions() {
		if c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE {
			reason = c.GetReason()
		}
	}
	return reason
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
