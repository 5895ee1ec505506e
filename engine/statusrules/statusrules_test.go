package statusrules_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/statusrules"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A tweak is one field of a spec.
type tweak func(*jobpolicyv1.JobSpec)

// A fact is one part of a status.
type fact func(*jobpolicyv1.JobStatus)

func suspend(s *jobpolicyv1.JobSpec) { s.Suspend = true }

func indexedOf(n int32) tweak {
	return func(s *jobpolicyv1.JobSpec) {
		s.CompletionMode = jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
		s.Completions, s.Parallelism = &n, 1
	}
}

func completions(n int32) tweak { return func(s *jobpolicyv1.JobSpec) { s.Completions = &n } }
func perIndex(s *jobpolicyv1.JobSpec) {
	s.BackoffLimitPerIndex = proto.Int32(1)
}

func successPolicy(s *jobpolicyv1.JobSpec) { s.SuccessPolicy = &jobpolicyv1.SuccessPolicy{} }

func condition(conditionType string, status jobpolicyv1.ConditionStatus) fact {
	return func(s *jobpolicyv1.JobStatus) {
		s.Conditions = append(s.Conditions, &jobpolicyv1.JobCondition{Type: conditionType, Status: status})
	}
}

func yes(conditionType string) fact {
	return condition(conditionType, jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE)
}

func no(conditionType string) fact {
	return condition(conditionType, jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE)
}

func start(second int64) fact {
	return func(s *jobpolicyv1.JobStatus) { s.StartTime = &timestamppb.Timestamp{Seconds: second} }
}

func completion(second int64) fact {
	return func(s *jobpolicyv1.JobStatus) { s.CompletionTime = &timestamppb.Timestamp{Seconds: second} }
}

func active(n int32) fact      { return func(s *jobpolicyv1.JobStatus) { s.Active = n } }
func ready(n int32) fact       { return func(s *jobpolicyv1.JobStatus) { s.Ready = &n } }
func terminating(n int32) fact { return func(s *jobpolicyv1.JobStatus) { s.Terminating = &n } }
func succeeded(n int32) fact   { return func(s *jobpolicyv1.JobStatus) { s.Succeeded = n } }
func failed(n int32) fact      { return func(s *jobpolicyv1.JobStatus) { s.Failed = n } }

func uncounted(succeeded, failed []string) fact {
	return func(s *jobpolicyv1.JobStatus) {
		s.Uncounted = &jobpolicyv1.UncountedTerminatedPods{}
		for _, uid := range succeeded {
			s.Uncounted.Succeeded = append(s.Uncounted.Succeeded, []byte(uid))
		}
		for _, uid := range failed {
			s.Uncounted.Failed = append(s.Uncounted.Failed, []byte(uid))
		}
	}
}

func ranges(bounds ...int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for pair := range slices.Chunk(bounds, 2) {
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: pair[0], Last: pair[1]})
	}
	return set
}

func completedIndexes(bounds ...int32) fact {
	return func(s *jobpolicyv1.JobStatus) { s.CompletedIndexes = ranges(bounds...) }
}

func failedIndexes(bounds ...int32) fact {
	return func(s *jobpolicyv1.JobStatus) { s.FailedIndexes = ranges(bounds...) }
}

type testCase struct {
	spec          []tweak
	before, after []fact
	// want lists what v1.37 finds, as "Rule field".
	want []string
}

func (tc testCase) transition() statusrules.Transition {
	spec := &jobpolicyv1.JobSpec{Parallelism: 2}
	for _, change := range tc.spec {
		change(spec)
	}
	return statusrules.Transition{Spec: spec, Before: status(tc.before), After: status(tc.after)}
}

func status(facts []fact) *jobpolicyv1.JobStatus {
	s := &jobpolicyv1.JobStatus{}
	for _, set := range facts {
		set(s)
	}
	return s
}

func found(violations []statusrules.Violation) []string {
	var list []string
	for _, v := range violations {
		list = append(list, v.Rule+" "+v.Field)
	}
	return list
}

// ruleCases hold, for each rule of v1.37, updates that only just break it and updates
// that only just keep it.
func ruleCases() map[string]testCase {
	cases := map[string]testCase{
		"nothing was written and nothing is": {},
		"a running Job":                      {after: []fact{start(5), active(2), ready(2), terminating(1)}},
	}
	for _, group := range []map[string]testCase{countCases(), conditionCases(), timeCases(), indexCases()} {
		maps.Copy(cases, group)
	}
	return cases
}

func TestRules(t *testing.T) {
	for name, tc := range ruleCases() {
		t.Run(name, func(t *testing.T) {
			got := statusrules.Default(statusrules.NewestMinor).Check(tc.transition())
			if diff := cmp.Diff(tc.want, found(got)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			for _, v := range got {
				if v.Description == "" || strings.Contains(v.Description, "%!") {
					t.Errorf("description %q", v.Description)
				}
			}
		})
	}
}

func TestEveryRuleHasACaseThatBreaksIt(t *testing.T) {
	broken := map[string]bool{}
	for _, tc := range ruleCases() {
		for _, line := range tc.want {
			rule, _, _ := strings.Cut(line, " ")
			broken[rule] = true
		}
	}
	for _, rule := range statusrules.Default(statusrules.NewestMinor).Rules() {
		if !broken[rule.Name] {
			t.Errorf("no case breaks %s", rule.Name)
		}
	}
}

// Each row of the table is for a range of versions without a gap, and no version has two
// rows for one rule.
func TestTableIsWellFormed(t *testing.T) {
	camelCase := regexp.MustCompile(`^([A-Z][a-zA-Z]+)+$`)
	ends := map[string]int32{}
	gated := map[string]bool{}
	for _, rule := range statusrules.Rules() {
		if !camelCase.MatchString(rule.Name) {
			t.Errorf("name %q", rule.Name)
		}
		if rule.Since < statusrules.OldestMinor || rule.Until > statusrules.NewestMinor || rule.Since > rule.Until {
			t.Errorf("%s is of v1.%d to v1.%d", rule.Name, rule.Since, rule.Until)
		}
		if end, again := ends[rule.Name]; again && (rule.Since != end+1 || rule.Gated != gated[rule.Name]) {
			t.Errorf("%s: a form of v1.%d follows one that ends with v1.%d", rule.Name, rule.Since, end)
		}
		ends[rule.Name], gated[rule.Name] = rule.Until, rule.Gated
	}
}

func TestViolationsAreBounded(t *testing.T) {
	uids := make([]string, 200_000)
	got := statusrules.Default(statusrules.NewestMinor).Check(testCase{after: []fact{uncounted(nil, uids), active(-1)}}.transition())
	if len(got) != statusrules.MaxViolations || got[0].Field != "status.active" {
		t.Errorf("%d violations, the first %v", len(got), got[0])
	}
}

func TestNothingAtAllIsLegal(t *testing.T) {
	if got := statusrules.Default(statusrules.NewestMinor).Check(statusrules.Transition{}); got != nil {
		t.Errorf("violations %v of nothing", got)
	}
}
