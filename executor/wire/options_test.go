package wire_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestAPolicyIsReadInJSONAndInYAML(t *testing.T) {
	want := &jobpolicyv1.PolicySpec{
		Job:     &jobpolicyv1.JobOptions{TtlSecondsAfterFailed: new(int32(86400))},
		CronJob: &jobpolicyv1.CronJobOptions{SkippedHour: jobpolicyv1.SkippedHour_SKIPPED_HOUR_RUN_AFTER},
	}
	for _, text := range []string{
		`{"job": {"ttlSecondsAfterFailed": 86400}, "cronJob": {"skippedHour": "RunAfter"}}`,
		`{job: {ttlSecondsAfterFailed: 86400}, cronJob: {skippedHour: RunAfter}}`,
		"\n  {job: {ttlSecondsAfterFailed: 86400},\n   cronJob: {skippedHour: RunAfter} # when clocks are set forward\n  }\n",
	} {
		got, problems := wire.PolicySpec(map[string]string{wire.Policy: text})
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || problems != nil {
			t.Errorf("%s: problems %q (-want +got):\n%s", text, problems, diff)
		}
	}
	if got, problems := wire.PolicySpec(map[string]string{"jobpolicy.dev/other": "{}"}); got != nil || problems != nil {
		t.Errorf("without the annotation: %v, problems %q", got, problems)
	}
}

func TestAPolicyThatCannotBeReadSaysWhy(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string
	}{
		"a name":        {"nightly", []string{`annotation jobpolicy.dev/policy names the JobPolicy "nightly", which is not known here`}},
		"nothing":       {"", []string{`annotation jobpolicy.dev/policy names the JobPolicy "", which is not known here`}},
		"no YAML":       {"{job: [}", []string{"annotation jobpolicy.dev/policy: expected JSON, or YAML in braces, found yaml: did not find expected node content"}},
		"a field twice": {"{job: {}, job: {}}", []string{`annotation jobpolicy.dev/policy: expected JSON, or YAML in braces, found yaml: unmarshal errors:` + "\n  line 1: key \"job\" already set in map"}},
		"two mistakes": {`{"job": {"ttlSecondsAfterFailed": "1h"}, "jobs": {}}`, []string{
			`annotation jobpolicy.dev/policy: job.ttlSecondsAfterFailed: expected a whole number, found "1h"`,
			"annotation jobpolicy.dev/policy: jobs: there is no such field, expected one of job, cronJob",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, problems := wire.PolicySpec(map[string]string{wire.Policy: tc.text})
			if diff := cmp.Diff(tc.want, problems); diff != "" || spec != nil {
				t.Errorf("spec %v, problems (-want +got):\n%s", spec, diff)
			}
		})
	}
}

// The contract has at most 10 problems, each of at most 1024 bytes.
func TestProblemsAreWithinTheContract(t *testing.T) {
	var fields []string
	for i := range 12 {
		fields = append(fields, strings.Repeat(string(rune('a'+i)), 1000)+": 1")
	}
	_, problems := wire.PolicySpec(map[string]string{wire.Policy: "{" + strings.Join(fields, ", ") + "}"})
	tooLong := slices.ContainsFunc(problems, func(p string) bool { return len(p) > 1024 })
	if len(problems) != 10 || tooLong {
		t.Errorf("%d problems, want 10 of at most 1024 bytes: %.100q", len(problems), problems)
	}
}

func TestTheJobOfARunIsKnownAgain(t *testing.T) {
	at := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		create *jobpolicyv1.CreateJob
		want   map[string]string
	}{
		"in a zone ahead of UTC": {
			&jobpolicyv1.CreateJob{ScheduledTime: timestamppb.New(at), UtcOffsetSeconds: 7200},
			map[string]string{"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-29T03:00:00+02:00"},
		},
		"in UTC": {
			&jobpolicyv1.CreateJob{ScheduledTime: timestamppb.New(at)},
			map[string]string{"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-29T01:00:00Z"},
		},
		"asked for": {
			&jobpolicyv1.CreateJob{RunNow: "please"},
			map[string]string{"jobpolicy.dev/run-now": "please", "cronjob.kubernetes.io/instantiate": "manual"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, wire.RunAnnotations(tc.create)); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// Names of rules belong to a policy of the Job, so that a policy for many Jobs may not fit one of them.
func TestNamesMustFitTheRulesOfTheJob(t *testing.T) {
	cases := map[string]struct {
		names string
		rules int
		want  string
	}{
		"no names":         {names: "[]", rules: 2},
		"a name each":      {names: "[a, b]", rules: 2},
		"too few":          {names: "[a]", rules: 2, want: "expected as many names as spec.podFailurePolicy has rules (2), or none, found 1"},
		"too many":         {names: "[a, b]", rules: 1, want: "expected as many names as spec.podFailurePolicy has rules (1), or none, found 2"},
		"names of nothing": {names: "[a]", want: "expected as many names as spec.podFailurePolicy has rules (0), or none, found 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{}
			job.Annotations = map[string]string{wire.Policy: "{job: {endCondition: true, failureRuleNames: " + tc.names + "}}"}
			if tc.rules > 0 {
				job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: make([]batchv1.PodFailurePolicyRule, tc.rules)}
			}
			spec, err := wire.JobSpec(job)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				if len(spec.GetOptionProblems()) > 0 || !spec.GetOptions().GetEndCondition() {
					t.Errorf("problems %q, options %v", spec.GetOptionProblems(), spec.GetOptions())
				}
				return
			}
			want := []string{"annotation jobpolicy.dev/policy: job.failureRuleNames: " + tc.want}
			if got := spec.GetOptionProblems(); !slices.Equal(got, want) || spec.GetOptions() != nil {
				t.Errorf("problems %q, options %v; want %q and none", got, spec.GetOptions(), want)
			}
		})
	}
}

// Only an index of a Job with a limit per index can fail alone.
func TestWhichJobsMayFailIndexesOfPodsThatNeverStart(t *testing.T) {
	job := &batchv1.Job{}
	job.Annotations = map[string]string{wire.Policy: "{job: {neverStarted: [{problem: Image, afterSeconds: 9}, {problem: Unschedulable, afterSeconds: 9, action: FailIndex}]}}"}
	spec, err := wire.JobSpec(job)
	want := []string{"annotation jobpolicy.dev/policy: job.neverStarted[1].action: FailIndex needs spec.backoffLimitPerIndex"}
	if err != nil || !slices.Equal(spec.GetOptionProblems(), want) || spec.GetOptions() != nil {
		t.Errorf("problems %q, options %v, error %v; want %q and none", spec.GetOptionProblems(), spec.GetOptions(), err, want)
	}
	job.Spec.CompletionMode, job.Spec.Completions, job.Spec.BackoffLimitPerIndex = new(batchv1.IndexedCompletion), new(int32(1)), new(int32(0))
	if spec, err = wire.JobSpec(job); err != nil || spec.GetOptionProblems() != nil || len(spec.GetOptions().GetNeverStarted()) != 2 {
		t.Errorf("with a limit per index: problems %q, options %v, error %v", spec.GetOptionProblems(), spec.GetOptions(), err)
	}
}

// Options that cannot be read come with the last valid ones, if an annotation has some that can be read and fit.
func TestTheLastValidOptions(t *testing.T) {
	const ttl = `{"job":{"ttlSecondsAfterFailed":5}}`
	cases := map[string]struct {
		policy, last string
		want         string // The options of the Job.
		problems     int
	}{
		"none asked for":           {last: ttl, want: "none"},
		"valid":                    {policy: "{job: {ttlSecondsAfterFailed: 7}}", last: ttl, want: "7"},
		"invalid":                  {policy: "{job: {ttlSecondsAfterFailed: soon}}", last: ttl, want: "5", problems: 1},
		"by name":                  {policy: "nightly", last: ttl, want: "5", problems: 1},
		"they do not fit":          {policy: "{job: {failureRuleNames: [a]}}", last: ttl, want: "5", problems: 1},
		"the last ones do not fit": {policy: "nightly", last: `{"job":{"failureRuleNames":["a"]}}`, want: "none", problems: 1},
		"empty ones":               {policy: "nightly", last: `{"job":{}}`, want: "0", problems: 1},
		"none for a Job":           {policy: "nightly", last: `{"cronJob":{}}`, want: "0", problems: 1},
		"unreadable ones":          {policy: "nightly", last: `{"job":{"ttlSecondsAfterFailed":-1}}`, want: "none", problems: 1},
		"no JSON":                  {policy: "nightly", last: "[", want: "none", problems: 1},
		"not known":                {policy: "nightly", want: "none", problems: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
			if tc.policy != "" {
				job.Annotations[wire.Policy] = tc.policy
			}
			if tc.last != "" {
				job.Annotations[wire.LastValidPolicy] = tc.last
			}
			spec, err := wire.JobSpec(job)
			if err != nil {
				t.Fatal(err)
			}
			got := "none"
			if spec.GetOptions() != nil {
				got = fmt.Sprint(spec.GetOptions().GetTtlSecondsAfterFailed())
			}
			if got != tc.want || len(spec.GetOptionProblems()) != tc.problems {
				t.Errorf("options %s, problems %q; want %s and %d", got, spec.GetOptionProblems(), tc.want, tc.problems)
			}
		})
	}
	over := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wire.Policy: "nightly", wire.LastValidPolicy: ttl}}}
	over.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if spec, err := wire.JobSpec(over); err != nil || spec.GetOptions() != nil || len(spec.GetOptionProblems()) != 1 {
		t.Errorf("a finished Job: options %v, problems %q, error %v; want it to be kept", spec.GetOptions(), spec.GetOptionProblems(), err)
	}
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wire.Policy: "nightly", wire.LastValidPolicy: `{"cronJob":{"staggerSeconds":5}}`}}}
	if spec := wire.CronJobSpec(cron, false, "UTC"); spec.GetOptions().GetStaggerSeconds() != 5 || len(spec.GetOptionProblems()) != 1 {
		t.Errorf("a CronJob: options %v, problems %q", spec.GetOptions(), spec.GetOptionProblems())
	}
}

// The annotation is set beside others, removed, and left out if the API server would refuse it.
func TestTheAnnotationOfTheLastValidOptions(t *testing.T) {
	full := strings.Repeat("x", 256<<10)
	cases := map[string]struct {
		had  map[string]string
		text string
		want map[string]string
	}{
		"the only one":  {text: "{}", want: map[string]string{wire.LastValidPolicy: "{}"}},
		"another one":   {had: map[string]string{"a": "b", wire.LastValidPolicy: "old"}, text: "{}", want: map[string]string{"a": "b", wire.LastValidPolicy: "{}"}},
		"removed":       {had: map[string]string{"a": "b", wire.LastValidPolicy: "old"}, want: map[string]string{"a": "b"}},
		"never there":   {},
		"no room, old":  {had: map[string]string{"a": full[100:], wire.LastValidPolicy: "old"}, text: full[:200], want: map[string]string{"a": full[100:]}},
		"just room new": {had: map[string]string{"a": full[100:]}, text: "{}", want: map[string]string{"a": full[100:], wire.LastValidPolicy: "{}"}},
	}
	for name, tc := range cases {
		object := metav1.ObjectMeta{Annotations: maps.Clone(tc.had)}
		had := object.Annotations
		wire.WithLastValid(&object, tc.text)
		if !maps.Equal(object.Annotations, tc.want) || !maps.Equal(had, tc.had) {
			t.Errorf("%s: not the annotations that are wanted, or the old ones have changed", name)
		}
	}
}
