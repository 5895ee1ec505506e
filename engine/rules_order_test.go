package engine_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// undecidedJob is a Job on which no rule reaches a verdict.
const undecidedJob = `job completions=6 parallelism=6 mode=Indexed backoffLimit=3 backoffLimitPerIndex=9 activeDeadlineSeconds=5
failureRule action=FailJob in=42
now 1s
status start=0s`

// A holding makes one rule hold on undecidedJob and leaves the others as they are.
type holding struct {
	rule, reason string
	make         func(*testing.T, *scene)
}

// holdings has one entry a rule, in upstream's order (syncJob, v1.37).
func holdings() []holding {
	tell := func(line string) func(*testing.T, *scene) {
		return func(t *testing.T, s *scene) { s.mustTell(t, line) }
	}
	return []holding{
		{rule: "successAlreadyDeclared", reason: "DeclaredBefore", make: tell("condition SuccessCriteriaMet reason=DeclaredBefore")},
		{rule: "failureAlreadyDeclared", reason: "DeclaredBefore", make: tell("condition FailureTarget reason=DeclaredBefore")},
		{rule: "podFailurePolicyMatched", reason: "PodFailurePolicy", make: tell("finished p phase=Failed index=0 exit=main:42")},
		{rule: "backoffLimitExceeded", reason: "BackoffLimitExceeded", make: tell("status failed=4")},
		{rule: "deadlinePassed", reason: "DeadlineExceeded", make: tell("now 10s")},
		{
			rule: "startDeadlinePassed", reason: "StartDeadlineExceeded",
			make: tell("options {\"startDeadlineSeconds\": 1}\ncondition jobpolicy.dev/Started status=False"),
		},
		{
			rule: "podNeverStarted", reason: "PodNeverStarted",
			make: func(t *testing.T, s *scene) {
				s.req.Spec.Options = proto.CloneOf(cmp.Or(s.req.Spec.Options, &jobpolicyv1.JobOptions{}))
				s.req.Spec.Options.NeverStarted = []*jobpolicyv1.NeverStarted{{
					Problem: jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE, AfterSeconds: proto.Int32(1),
					Action: jobpolicyv1.NeverStartedAction_NEVER_STARTED_ACTION_FAIL_JOB,
				}}
				s.mustTell(t, "pods active=1 indexes=3\nunstarted late start=Image since=0s index=3")
			},
		},
		{
			rule: "tooManyFailedIndexes", reason: "MaxFailedIndexesExceeded",
			make: func(t *testing.T, s *scene) {
				s.mustTell(t, "spec maxFailedIndexes=0")
				s.indexesFailed(1)
			},
		},
		{
			rule: "allIndexesFinishedSomeFailed", reason: "FailedIndexes",
			make: func(_ *testing.T, s *scene) {
				s.indexesFailed(1)
				s.indexesSucceeded(0, 2, 3, 4, 5)
			},
		},
		{
			rule: "successPolicyMet", reason: "SuccessPolicy",
			make: func(t *testing.T, s *scene) {
				s.mustTell(t, "successRule indexes=2")
				s.indexesSucceeded(2)
			},
		},
		{
			rule: "completionsReached", reason: "CompletionsReached",
			make: func(_ *testing.T, s *scene) { s.indexesSucceeded(0, 1, 2, 3, 4, 5) },
		},
	}
}

// tooManyRestarts makes backoffLimitExceeded hold because of restarts. A Job for which
// restarts count cannot have a pod failure policy.
func tooManyRestarts(t *testing.T, s *scene) {
	s.req.Spec.PodFailurePolicy = nil
	s.mustTell(t, "spec restartPolicy=OnFailure\npods restarts=3")
}

func (s *scene) indexesSucceeded(ix ...int32) {
	s.req.Status.CompletedIndexes = indexes(s.req.Status.CompletedIndexes).Union(indexset.Of(ix...)).Message()
}

func (s *scene) indexesFailed(ix ...int32) {
	s.req.Status.FailedIndexes = indexes(s.req.Status.FailedIndexes).Union(indexset.Of(ix...)).Message()
}

// Each rule that fails a Job has its reason on the list, and no other one has.
func TestFailureReasons(t *testing.T) {
	for i, rule := range holdings() {
		s := newScene()
		s.mustTell(t, undecidedJob)
		rule.make(t, s)
		fails := is(decide(t, s.req).GetStatus(), failureTarget)
		if declared := i < 2; !declared && slices.Contains(engine.FailureReasons(), rule.reason) != fails {
			t.Errorf("%s fails the Job: %t; its reason %s is on the list: %t", rule.rule, fails, rule.reason, !fails)
		}
	}
}

// TestEverySetOfRules makes every possible set of rules hold at once, and expects the
// first of them to decide, or none if none holds. The list of rules is the
// specification, and this test checks all of it. The names are part of the contract.
func TestEverySetOfRules(t *testing.T) {
	for set := range 1 << len(holdings()) {
		rules := holdings()
		if reached := set&(1<<10) != 0; reached && set&(1<<7|1<<8) != 0 {
			continue // An index that failed did not succeed.
		}
		expectFirst(t, rules, set)
		if policy := set&(1<<2) != 0; !policy {
			rules[3].make = tooManyRestarts
			expectFirst(t, rules, set)
		}
	}
}

func expectFirst(t *testing.T, rules []holding, set int) {
	t.Helper()
	s := newScene()
	s.mustTell(t, undecidedJob)
	var want holding
	var names []string
	for i, rule := range rules {
		if set&(1<<i) == 0 {
			continue
		}
		rule.make(t, s)
		names = append(names, rule.rule)
		if want.rule == "" {
			want = rule
		}
	}
	resp, err := engine.DecideJob(s.req)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(names, ", "), err)
	}
	got := resp.GetExplanation().GetDecidingRule().Name()
	if got != want.rule || interimReason(resp, s.req.GetStatus()) != want.reason {
		t.Errorf("rules that hold: [%s]; %q decides with reason %q, want %q with %q",
			strings.Join(names, ", "), got, interimReason(resp, s.req.GetStatus()), want.rule, want.reason)
	}
	if want.rule == "" {
		want.rule = rules[len(rules)-1].rule
	}
	assertAskedUntil(t, resp.GetExplanation(), want.rule, got)
}

// assertAskedUntil wants the rules up to the last one to have been asked, and those that
// did not decide to say why.
func assertAskedUntil(t *testing.T, explanation *jobpolicyv1.Explanation, last, deciding string) {
	t.Helper()
	var names []string
	for _, rule := range holdings() {
		names = append(names, rule.rule)
	}
	want := names[:slices.Index(names, last)+1]
	var asked []string
	for _, answer := range explanation.GetRules() {
		name := answer.GetRule().Name()
		asked = append(asked, name)
		if answer.GetDetail() == "" && name != deciding {
			t.Errorf("rule %s does not say why it did not decide", name)
		}
	}
	if diff := gocmp.Diff(want, asked); diff != "" {
		t.Errorf("rules asked (-want +got):\n%s", diff)
	}
}

// interimReason is the reason of the declared verdict. If this decision only repeats the
// verdict, an earlier one has declared it.
func interimReason(resp *jobpolicyv1.DecideJobResponse, before *jobpolicyv1.JobStatus) string {
	if resp.GetStatus() != nil {
		before = resp.GetStatus()
	}
	for _, conditionType := range []string{complete, failed, criteriaMet, failureTarget} {
		for _, c := range before.GetConditions() {
			if c.GetType() == conditionType && c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE {
				return c.GetReason()
			}
		}
	}
	return ""
}
