package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/simulate"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	never     = jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER
	onFailure = jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE
	indexed   = jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
)

// spec is a Job of n pods, all at once.
func spec(n int32, change ...func(*jobpolicyv1.JobSpec)) *jobpolicyv1.JobSpec {
	s := &jobpolicyv1.JobSpec{Parallelism: n, Completions: proto.Int32(n), BackoffLimit: 6, RestartPolicy: never}
	for _, f := range change {
		f(s)
	}
	return s
}

func script(t *testing.T, texts ...string) []simulate.Script {
	t.Helper()
	var out []simulate.Script
	for _, text := range texts {
		s, err := simulate.ParseScript(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func scale(t *testing.T, text string) simulate.Change {
	t.Helper()
	c, err := simulate.ParseScale(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func story(r *simulate.Result) string {
	var b strings.Builder
	for _, e := range r.Timeline {
		fmt.Fprintf(&b, "%s %s\n", simulate.Clock(e.At), e.Text)
	}
	fmt.Fprintf(&b, "%s %s after %s; pods %d\n", r.Verdict, r.Reason, simulate.Clock(r.Makespan), len(r.Pods))
	return b.String()
}

// A storyCase is a scenario, and its story line by line.
type storyCase struct {
	scenario simulate.Scenario
	want     string
}

func playEach(t *testing.T, cases map[string]storyCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := simulate.Play(tc.scenario)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), story(r)); diff != "" {
				t.Errorf("story (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoriesOfHowAJobEnds(t *testing.T) {
	playEach(t, map[string]storyCase{
		"a pod that succeeds": {
			scenario: simulate.Scenario{Spec: spec(1)},
			want: `
0s pod 0 created
1s pod 0 running
1m1s pod 0 succeeded
1m1s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
1m1s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 1m1s; pods 1
`,
		},
		"a pod that never starts": {
			scenario: simulate.Scenario{Spec: spec(2), Scripts: script(t, "1:stuck")},
			want: `
0s 2 pods created (pod 0,1)
1s pod 0 running
1m1s pod 0 succeeded
Unfinished  after 1m1s; pods 2
`,
		},
		"deleted when its time to live is over": {
			scenario: simulate.Scenario{Spec: spec(1, func(s *jobpolicyv1.JobSpec) { s.TtlSecondsAfterFinished = proto.Int32(100) })},
			want: `
0s pod 0 created
1s pod 0 running
1m1s pod 0 succeeded
1m1s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
1m1s condition Complete (CompletionsReached): Reached expected number of succeeded pods
1m1s waits until 2m41s: the Job is kept for 100s after it finished (spec.ttlSecondsAfterFinished)
2m41s the Job is deleted: its time to live is over
Complete CompletionsReached after 1m1s; pods 1
`,
		},
	})
}

func TestStoriesOfFailures(t *testing.T) {
	playEach(t, map[string]storyCase{
		"retries come after longer and longer delays, and run out": {
			scenario: simulate.Scenario{
				Spec:    spec(1, func(s *jobpolicyv1.JobSpec) { s.BackoffLimit = 2 }),
				Scripts: script(t, "*:fail(7)@5s"),
			},
			want: `
0s pod 0 created
1s pod 0 running
6s pod 0 failed: exit code 7
6s waits until 16s: failures in a row: 1; next try 10s after the last one
16s pod 1 created
17s pod 1 running
22s pod 1 failed: exit code 7
22s waits until 42s: failures in a row: 2; next try 20s after the last one
42s pod 2 created
43s pod 2 running
48s pod 2 failed: exit code 7
48s condition FailureTarget (BackoffLimitExceeded): Job has reached the specified backoff limit
48s condition Failed (BackoffLimitExceeded): Job has reached the specified backoff limit
Failed BackoffLimitExceeded after 48s; pods 3
`,
		},
		"an exit code that fails the Job ends the other pods": {
			scenario: simulate.Scenario{
				Spec: spec(3, func(s *jobpolicyv1.JobSpec) {
					s.CompletionMode = indexed
					s.PodFailurePolicy = &jobpolicyv1.PodFailurePolicy{Rules: []*jobpolicyv1.PodFailurePolicyRule{{
						Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB,
						OnExitCodes: &jobpolicyv1.ExitCodesRequirement{
							Operator: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN, Values: []int32{42},
						},
					}}}
				}),
				Scripts: script(t, "1:fail(42)@10s"), StopDelay: 3 * time.Second,
			},
			want: `
0s 3 pods created (index 0-2)
1s 3 pods running (index 0-2)
11s index 1 failed: exit code 42
11s condition FailureTarget (PodFailurePolicy): Container main for pod default/job-1 failed with exit code 42 matching FailJob rule at index 0
11s 2 pods deleted (index 0,2): the Job is over
11s waits for pods to end: 0 active, 2 terminating, 0 being created
14s condition Failed (PodFailurePolicy): Container main for pod default/job-1 failed with exit code 42 matching FailJob rule at index 0
Failed PodFailurePolicy after 14s; pods 3
`,
		},
		"containers are restarted in their pod": {
			scenario: simulate.Scenario{
				Spec:    spec(1, func(s *jobpolicyv1.JobSpec) { s.RestartPolicy = onFailure }),
				Scripts: script(t, "0:fail@5s,fail@5s,succeed@5s"),
			},
			want: `
0s pod 0 created
1s pod 0 running
6s pod 0 container failed: exit code 1; restarted in the pod at once
6s pod 0 container restarted: restart 1
11s pod 0 container failed: exit code 1; restarted in the pod after 10s
21s pod 0 container restarted: restart 2
26s pod 0 succeeded
26s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
26s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 26s; pods 1
`,
		},
	})
}

func TestStoriesOfChangesByTheUser(t *testing.T) {
	playEach(t, map[string]storyCase{
		"suspended and resumed": {
			scenario: simulate.Scenario{
				Spec:    spec(1),
				Changes: []simulate.Change{{At: 10 * time.Second, Suspend: new(true)}, {At: 20 * time.Second, Suspend: new(false)}},
			},
			want: `
0s pod 0 created
1s pod 0 running
10s the user suspends the Job
10s pod 0 deleted: the Job is suspended
10s condition Suspended (JobSuspended): Job suspended
20s the user resumes the Job
20s pod 1 created
20s condition Suspended=False (JobResumed): Job resumed
21s pod 1 running
1m21s pod 1 succeeded
1m21s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
1m21s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 1m21s; pods 2
`,
		},
		"scaled while it runs": {
			scenario: simulate.Scenario{
				Spec: spec(4, func(s *jobpolicyv1.JobSpec) { s.Parallelism = 1 }), Changes: []simulate.Change{scale(t, "3@30s")},
			},
			want: `
0s pod 0 created
1s pod 0 running
30s the user sets parallelism from 1 to 3
30s 2 pods created (pod 1,2)
31s 2 pods running (pod 1,2)
1m1s pod 0 succeeded
1m1s pod 3 created
1m2s pod 3 running
1m31s 2 pods succeeded (pod 1,2)
2m2s pod 3 succeeded
2m2s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
2m2s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 2m2s; pods 4
`,
		},
	})
}
