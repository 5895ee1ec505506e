package explain_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
)

// The list has what is set, in the order of the contract, with the names and values of a JobPolicy.
func TestOptionsAreListed(t *testing.T) {
	const policy = "JobPolicy nightly"
	cases := map[string]struct {
		from    string
		options proto.Message
		unread  bool
		want    string // empty: there is no list
	}{
		"nobody asks for any": {"", &jobpolicyv1.JobOptions{EndCondition: true}, false, ""},
		"cannot be read":      {policy, (*jobpolicyv1.JobOptions)(nil), true, policy + ": cannot be read"},
		"the last valid ones": {
			policy, &jobpolicyv1.JobOptions{EndCondition: true}, true, policy + ": cannot be read; the last valid ones: job.endCondition true",
		},
		"none for Jobs": {policy, (*jobpolicyv1.JobOptions)(nil), false, policy + ": none"},
		"a list of problems": {
			policy, &jobpolicyv1.JobOptions{NeverStarted: []*jobpolicyv1.NeverStarted{
				{Problem: jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE, AfterSeconds: proto.Int32(60)},
				{Problem: jobpolicyv1.PodStartProblem_POD_START_PROBLEM_VOLUME_OR_SANDBOX, AfterSeconds: proto.Int32(5), Action: jobpolicyv1.NeverStartedAction_NEVER_STARTED_ACTION_FAIL_JOB},
			}},
			false, policy + ": job.neverStarted [{problem Image, afterSeconds 60}, {problem VolumeOrSandbox, afterSeconds 5, action FailJob}]",
		},
		"numbers and names": {
			policy, &jobpolicyv1.JobOptions{
				FailureRuleNames: []string{"", "bad-input"}, StartDeadlineSeconds: proto.Int64(90),
				RetryDelay: &jobpolicyv1.RetryDelay{Factor: proto.Float64(1.5), DelaysSeconds: []int32{4, 1}},
			},
			false, policy + ": job.retryDelay factor 1.5, delaysSeconds [4, 1]; job.startDeadlineSeconds 90; job.failureRuleNames [, bad-input]",
		},
		"of a CronJob": {policy, &jobpolicyv1.CronJobOptions{MaxMissedRuns: proto.Int32(0)}, false, policy + ": cronJob.maxMissedRuns 0"},
	}
	for name, tc := range cases {
		got := ""
		if list := explain.OptionsOf(tc.from, tc.options, !tc.unread); list != nil {
			got = list.String()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A Job has the options only if somebody reads them.
func TestOptionsOfAJob(t *testing.T) {
	const held = "{job: {endCondition: true}}"
	facts := func(options, from string, ours bool) explain.Facts {
		j := job(asksFor(options))
		if ours {
			managedByUs(j)
		}
		return explain.Facts{Job: j, OptionsFrom: from}
	}
	none := explain.Facts{Job: job(managedByUs)}
	cases := map[string]struct {
		facts explain.Facts
		want  string
	}{
		"in the annotation": {facts(held, "", true), "the annotation " + wire.Policy + ": job.endCondition true"},
		"in a policy":       {facts(held, "JobPolicy p", true), "JobPolicy p: job.endCondition true"},
		"not read":          {facts("p", "", true), "JobPolicy p: cannot be read"},
		"of nobody's":       {facts(held, "", false), ""},
		"none":              {none, ""},
	}
	for name, tc := range cases {
		got := ""
		if list := tc.facts.Options(); list != nil {
			got = list.String()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
