package options_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

func TestParse(t *testing.T) {
	spec, problems := options.Parse([]byte(`{
		"job": {"ttlSecondsAfterFailed": 86400, "ttlSecondsAfterComplete": null},
		"cronJob": {"startJitterSeconds": 0, "skippedHour": "RunAfter", "repeatedHour": "Last"}
	}`))
	want := &jobpolicyv1.PolicySpec{
		Job: &jobpolicyv1.JobOptions{TtlSecondsAfterFailed: proto.Int32(86400)},
		CronJob: &jobpolicyv1.CronJobOptions{
			StartJitterSeconds: proto.Int32(0),
			SkippedHour:        jobpolicyv1.SkippedHour_SKIPPED_HOUR_RUN_AFTER,
			RepeatedHour:       jobpolicyv1.RepeatedHour_REPEATED_HOUR_LAST,
		},
	}
	if len(problems) > 0 || !proto.Equal(spec, want) {
		t.Errorf("spec %v, problems %v; want %v", spec, problems, want)
	}
}

// mistakes are documents that say something wrong, and what is said of each.
var mistakes = map[string]struct {
	document string
	want     []string
}{
	"no JSON":                 {`{job: {}}`, []string{"expected a JSON object, found invalid character 'j' looking for beginning of object key string"}},
	"nothing":                 {``, []string{"expected a JSON object, found EOF"}},
	"no object":               {`"job"`, []string{`expected an object, found "job"`}},
	"more behind it":          {`{} {}`, []string{"expected one JSON object, found more behind it"}},
	"no such field":           {`{"jobs": {}}`, []string{"jobs: there is no such field, expected one of job, cronJob"}},
	"a proto name":            {`{"cron_job": {}}`, []string{"cron_job: there is no such field, expected one of job, cronJob"}},
	"not a message":           {`{"job": 3}`, []string{"job: expected an object, found 3"}},
	"a text":                  {`{"cronJob": {"startJitterSeconds": "60"}}`, []string{`cronJob.startJitterSeconds: expected a whole number, found "60"`}},
	"a fraction":              {`{"cronJob": {"startJitterSeconds": 1.5}}`, []string{"cronJob.startJitterSeconds: expected a whole number from 0 to 3600, found 1.5"}},
	"beyond 32 bits":          {`{"job": {"ttlSecondsAfterFailed": 2147483648}}`, []string{"job.ttlSecondsAfterFailed: expected a whole number from 0 to 2147483647, found 2147483648"}},
	"too short a deadline":    {`{"job": {"terminationDeadlineSeconds": 0}}`, []string{"job.terminationDeadlineSeconds: expected a whole number from 1 to 2147483647, found 0"}},
	"too long a deadline":     {`{"job": {"terminationDeadlineSeconds": 2147483648}}`, []string{"job.terminationDeadlineSeconds: expected a whole number from 1 to 2147483647, found 2147483648"}},
	"a node, and no deadline": {`{"job": {"terminationDeadlineNode": "NotReady"}}`, []string{"job.terminationDeadlineNode: needs terminationDeadlineSeconds"}},
	"no such node":            {`{"job": {"terminationDeadlineSeconds": 60, "terminationDeadlineNode": "Ready"}}`, []string{`job.terminationDeadlineNode: expected one of Any, NotReady, found "Ready"`}},
	"below the limit":         {`{"job": {"ttlSecondsAfterFailed": -1}}`, []string{"job.ttlSecondsAfterFailed: expected a whole number from 0 to 2147483647, found -1"}},
	"no such value":           {`{"cronJob": {"skippedHour": "Never"}}`, []string{`cronJob.skippedHour: expected one of Skip, RunAfter, found "Never"`}},
	"unspecified":             {`{"cronJob": {"skippedHour": "Unspecified"}}`, []string{`cronJob.skippedHour: expected one of Skip, RunAfter, found "Unspecified"`}},
	"a long value":            {`{"job": "` + strings.Repeat("x", 100) + `"}`, []string{`job: expected an object, found "` + strings.Repeat("x", 63) + "…"}},
	"delays in two ways": {`{"job": {"retryDelay": {"initialSeconds": 9, "delaysSeconds": [3]}}}`, []string{
		"job.retryDelay.delaysSeconds: cannot be set together with any of initialSeconds, maxSeconds, factor",
	}},
	"a list, and a delay after quotas": {`{"job": {"retryDelay": {"quotaMaxSeconds": 1, "delaysSeconds": [3]}}}`, nil},
	"a delay of a day after quotas": {`{"job": {"retryDelay": {"quotaMaxSeconds": 86401}}}`, []string{
		"job.retryDelay.quotaMaxSeconds: expected a whole number from 1 to 86400, found 86401",
	}},
	"a longest delay below the first": {`{"job": {"retryDelay": {"initialSeconds": 9, "maxSeconds": 8}}}`, []string{
		"job.retryDelay.maxSeconds: expected at least initialSeconds (9), found 8",
	}},
	"pods that never start": {`{"job": {"neverStarted": [{"problem": "Image", "afterSeconds": 0}, {"problem": "Disk", "action": "Ignore"}], "whenJobFails": "KeepPods"}}`, []string{
		`job.neverStarted[1].action: expected one of Count, FailIndex, FailJob, found "Ignore"`,
		`job.neverStarted[1].problem: expected one of Unschedulable, VolumeOrSandbox, Image, SecurityContext, Configuration, found "Disk"`, `job.whenJobFails: expected one of DeletePods, EndPods, found "KeepPods"`,
		"job.neverStarted[0].afterSeconds: expected a whole number from 1 to 2147483647, found 0",
		"job.neverStarted[1].problem: is required",
		"job.neverStarted[1].afterSeconds: is required",
	}},
	"failures without a condition":               {`{"job": {"endConditionFailures": 3}}`, []string{"job.endConditionFailures: needs endCondition to be true"}},
	"failures of a condition that is not wanted": {`{"job": {"endConditionFailures": 1, "endCondition": false}}`, []string{"job.endConditionFailures: needs endCondition to be true"}},
	"no failures":                  {`{"job": {"endConditionFailures": 0, "endCondition": true}}`, []string{"job.endConditionFailures: expected a whole number from 1 to 10, found 0"}},
	"more failures than the limit": {`{"job": {"endConditionFailures": 11, "endCondition": true}}`, []string{"job.endConditionFailures: expected a whole number from 1 to 10, found 11"}},
	"failures that are all":        {`{"job": {"endConditionFailures": "all", "endCondition": true}}`, []string{`job.endConditionFailures: expected a whole number, found "all"`}},
	"a problem twice": {`{"job": {"neverStarted": [{"problem": "Image", "afterSeconds": 1}, {"problem": "Image", "afterSeconds": 2}]}}`, []string{
		"job.neverStarted: has two items of the same problem",
	}},
	"a factor that raises nothing, a maximum that is none, and CPU without exit codes": {`{"job": {"nextTryResources": {"resource": "Cpu", "factor": 1, "max": "8 Gi"}}}`, []string{
		"job.nextTryResources.factor: expected more than 1, found 1",
		`job.nextTryResources.max: expected a Kubernetes quantity above 0, for example 8Gi, found "8 Gi"`,
		"job.nextTryResources.onExitCodes: expected at least one exit code, because running out of memory does not raise Cpu",
	}},
	"raised resources of which nothing is said": {`{"job": {"nextTryResources": {}}}`, []string{
		"job.nextTryResources.resource: is required", "job.nextTryResources.max: is required",
	}},
	"raised resources beyond limits": {`{"job": {"nextTryResources": {"resource": "Disk", "factor": 11, "max": "0", "onExitCodes": [0]}}}`, []string{
		`job.nextTryResources.resource: expected one of Memory, Cpu, found "Disk"`,
		"job.nextTryResources.resource: is required",
		"job.nextTryResources.factor: expected a number from 1 to 10, found 11",
		"job.nextTryResources.onExitCodes[0]: expected a whole number from 1 to 255, found 0",
		`job.nextTryResources.max: expected a Kubernetes quantity above 0, for example 8Gi, found "0"`,
	}},
	"an item beyond the limit": {`{"job": {"retryDelay": {"delaysSeconds": [3, 0]}}}`, []string{
		"job.retryDelay.delaysSeconds[1]: expected a whole number from 1 to 86400, found 0",
	}},
	"deadlines of no time": {`{"job": {"startDeadlineSeconds": 0, "tryDeadlineSeconds": 0}}`, []string{
		"job.startDeadlineSeconds: expected a whole number of at least 1, found 0",
		"job.tryDeadlineSeconds: expected a whole number from 1 to 2147483647, found 0",
	}},
	"more jitter than the delay": {`{"job": {"retryDelay": {"jitterPercent": 101}}}`, []string{
		"job.retryDelay.jitterPercent: expected a whole number from 0 to 100, found 101",
	}},
	"a rule with a long name": {`{"job": {"failureRuleNames": ["` + strings.Repeat("x", 64) + `"]}}`, []string{
		"job.failureRuleNames[0]: expected a text of 0 to 63 bytes, found 64",
	}},
	"a condition that is a text": {`{"job": {"endCondition": "yes"}}`, []string{`job.endCondition: expected true or false, found "yes"`}},
	"a window beyond the limits": {`{"cronJob": {"staggerSeconds": 86401, "publishNextScheduleTime": 1}}`, []string{
		"cronJob.publishNextScheduleTime: expected true or false, found 1",
		"cronJob.staggerSeconds: expected a whole number from 1 to 86400, found 86401",
	}},
	"more missed runs than the limit": {`{"cronJob": {"maxMissedRuns": 101}}`, []string{"cronJob.maxMissedRuns: expected a whole number from 0 to 100, found 101"}},
	"fewer missed runs than none":     {`{"cronJob": {"maxMissedRuns": -1}}`, []string{"cronJob.maxMissedRuns: expected a whole number from 0 to 100, found -1"}},
	"a group of nothing":              {`{"cronJob": {"group": {}}}`, []string{"cronJob.group.name: is required", "cronJob.group.maxActiveRuns: is required"}},
	"a group beyond limits": {`{"cronJob": {"group": {"name": "` + strings.Repeat("x", 64) + `", "maxActiveRuns": 10001}}}`, []string{
		"cronJob.group.name: expected a text of 1 to 63 bytes, found 64", "cronJob.group.maxActiveRuns: expected a whole number from 1 to 10000, found 10001",
	}},
	"a group that is a name": {`{"cronJob": {"group": "etl"}}`, []string{
		`cronJob.group: expected an object, found "etl"`, "cronJob.group.name: is required", "cronJob.group.maxActiveRuns: is required",
	}},
	"more than one": {`{"cronJob": {"suspendAfterFailures": 0, "startJitterSeconds": 3601, "x": 1}}`, []string{
		"cronJob.x: there is no such field, expected one of startJitterSeconds, repeatedHour, skippedHour, missedBeforeEdit, suspendAfterFailures, staggerSeconds, maxMissedRuns, group, publishNextScheduleTime",
		"cronJob.startJitterSeconds: expected a whole number from 0 to 3600, found 3601",
		"cronJob.suspendAfterFailures: expected a whole number from 1 to 100, found 0",
	}},
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for name, tc := range mistakes {
		t.Run(name, func(t *testing.T) {
			_, problems := options.Parse([]byte(tc.document))
			if got := texts(problems); !slices.Equal(got, tc.want) {
				t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestCheckNamesFieldsAsTheContractDoes(t *testing.T) {
	got := texts(options.Check(&jobpolicyv1.CronJobOptions{StartJitterSeconds: proto.Int32(math.MaxInt32), SuspendAfterFailures: proto.Int32(1)}))
	want := []string{"start_jitter_seconds: expected a whole number from 0 to 3600, found 2147483647"}
	if !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}

func texts(problems []options.Problem) []string {
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return texts
}

// What is written is read as the same options, and two texts of the same options are written alike.
func TestFormat(t *testing.T) {
	cases := map[string]struct{ document, want string }{
		"nothing":        {document: `{}`},
		"empty options":  {document: `{"cronJob":{},"job":{}}`},
		"zero, and null": {document: `{"job": {"ttlSecondsAfterFailed": 0, "ttlSecondsAfterComplete": null}}`, want: `{"job":{"ttlSecondsAfterFailed":0}}`},
		"all kinds of values": {
			document: `{"job": {"endCondition": true, "failureRuleNames": ["a", "<b>"], "retryDelay": {"factor": 1.5, "maxSeconds": 300}, "whenJobFails": "EndPods",
				"neverStarted": [{"problem": "VolumeOrSandbox", "afterSeconds": 60, "action": "FailJob"}, {"problem": "Image", "afterSeconds": 9}]},
				"cronJob": {"group": {"name": "etl", "maxActiveRuns": 3}, "skippedHour": "RunAfter"}}`,
			want: `{"cronJob":{"group":{"maxActiveRuns":3,"name":"etl"},"skippedHour":"RunAfter"},"job":{"endCondition":true,"failureRuleNames":["a","\u003cb\u003e"],` +
				`"neverStarted":[{"action":"FailJob","afterSeconds":60,"problem":"VolumeOrSandbox"},{"afterSeconds":9,"problem":"Image"}],` +
				`"retryDelay":{"factor":1.5,"maxSeconds":300},"whenJobFails":"EndPods"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, _ := options.Parse([]byte(tc.document))
			text := options.Format(spec)
			if want := cmp.Or(tc.want, tc.document); text != want {
				t.Errorf("written as\n%s\nwant\n%s", text, want)
			}
			again, problems := options.Parse([]byte(text))
			if len(problems) > 0 || !proto.Equal(again, spec) {
				t.Errorf("read as %v, problems %v; want %v", again, problems, spec)
			}
		})
	}
}

func TestHowManyFinishedPodsStay(t *testing.T) {
	_, problems := options.Parse([]byte(`{"job": {"keepFinishedPods": {"succeeded": -1, "failed": 100001, "all": 3}}}`))
	want := []string{
		"job.keepFinishedPods.all: there is no such field, expected one of succeeded, failed",
		"job.keepFinishedPods.succeeded: expected a whole number from 0 to 100000, found -1",
		"job.keepFinishedPods.failed: expected a whole number from 0 to 100000, found 100001",
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}
