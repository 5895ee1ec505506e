package wire_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

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
		"a name":        {"nightly", []string{`annotation jobpolicy.dev/policy names the JobPolicy "nightly", and this executor reads none`}},
		"nothing":       {"", []string{`annotation jobpolicy.dev/policy names the JobPolicy "", and this executor reads none`}},
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
