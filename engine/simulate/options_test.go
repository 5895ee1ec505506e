package simulate_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/simulate"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// with is a Job of one pod with options that the Kubernetes API does not have.
func with(o *jobpolicyv1.JobOptions) func(*jobpolicyv1.JobSpec) {
	return func(s *jobpolicyv1.JobSpec) { s.Completions, s.Options = proto.Int32(1), o }
}

func TestStoryOfOptionsOfTries(t *testing.T) {
	playEach(t, map[string]storyCase{
		"a retry delay of its own": {
			scenario: simulate.Scenario{
				Spec:    spec(1, with(&jobpolicyv1.JobOptions{RetryDelay: &jobpolicyv1.RetryDelay{DelaysSeconds: []int32{2, 30}}})),
				Scripts: script(t, "0-1:fail@1s"), Runtime: simulate.Runtime{Mean: 1},
			},
			want: `
0s pod 0 created
1s pod 0 running
2s pod 0 failed: exit code 1
2s waits until 4s: failures in a row: 1; next try 2s after the last one
4s pod 1 created
5s pod 1 running
6s pod 1 failed: exit code 1
6s waits until 36s: failures in a row: 2; next try 30s after the last one
36s pod 2 created
37s pod 2 running
37s pod 2 succeeded
37s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
37s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 37s; pods 3
`,
		},
		"more memory for the next try": {
			scenario: simulate.Scenario{
				Spec: spec(1, with(&jobpolicyv1.JobOptions{
					RetryDelay:       &jobpolicyv1.RetryDelay{DelaysSeconds: []int32{2}},
					NextTryResources: &jobpolicyv1.NextTryResources{Resource: jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY, Max: "8Gi", Factor: proto.Float64(1.5)},
				})),
				Scripts: script(t, "0-1:oom@1s", "2:fail@1s"), Runtime: simulate.Runtime{Mean: 1},
			},
			want: `
0s pod 0 created
1s pod 0 running
2s pod 0 failed: exit code 137 (OOMKilled)
2s waits until 4s: failures in a row: 1; next try 2s after the last one
4s pod 1 created: 1.5 times the template's memory, at most 8Gi
5s pod 1 running
6s pod 1 failed: exit code 137 (OOMKilled)
6s waits until 8s: failures in a row: 2; next try 2s after the last one
8s pod 2 created: 2.25 times the template's memory, at most 8Gi
9s pod 2 running
10s pod 2 failed: exit code 1
10s waits until 12s: failures in a row: 3; next try 2s after the last one
12s pod 3 created: 2.25 times the template's memory, at most 8Gi
13s pod 3 running
13s pod 3 succeeded
13s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
13s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 13s; pods 4
`,
		},
		"a deadline of each try": {
			scenario: simulate.Scenario{
				Spec: spec(1, with(&jobpolicyv1.JobOptions{TryDeadlineSeconds: proto.Int64(60)})), Scripts: script(t, "0:hang"), Runtime: simulate.Runtime{Mean: 1},
			},
			want: `
0s pod 0 created
1s pod 0 running
1m pod 0 past its deadline: activeDeadlineSeconds of the pod is 60
1m1s pod 0 failed: DeadlineExceeded, exit code 143
1m1s waits until 1m11s: failures in a row: 1; next try 10s after the last one
1m11s pod 1 created
1m12s pod 1 running
1m12s pod 1 succeeded
1m12s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
1m12s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 1m12s; pods 2
`,
		},
	})
}

func TestStoryOfPodsThatNeverStart(t *testing.T) {
	never := &jobpolicyv1.JobOptions{NeverStarted: []*jobpolicyv1.NeverStarted{{Problem: jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE, AfterSeconds: proto.Int32(60)}}}
	playEach(t, map[string]storyCase{
		"the image of the first pod cannot be pulled": {
			scenario: simulate.Scenario{Spec: spec(1, with(never)), Scripts: script(t, "0:stuck"), Runtime: simulate.Runtime{Mean: 1}},
			want: `
0s pod 0 created
1s waits until 1m: pods that do not start: 1; pod job-0 (ImagePullBackOff) may take 60s, then it counts as failed
1m pod 0 deleted: it did not start in time
1m waits until 1m10s: failures in a row: 1; next try 10s after the last one
1m10s pod 1 created
1m11s pod 1 running
1m11s pod 1 succeeded
1m11s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
1m11s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 1m11s; pods 2
`,
		},
	})
}

func TestStoryOfADeadlineToStart(t *testing.T) {
	playEach(t, map[string]storyCase{
		"no pod runs before the deadline to start": {
			scenario: simulate.Scenario{
				Spec: spec(1, with(&jobpolicyv1.JobOptions{StartDeadlineSeconds: proto.Int64(300)})), Scripts: script(t, "*:stuck"),
			},
			want: `
0s pod 0 created
0s condition jobpolicy.dev/Started=False (NoPodRan): No pod of the Job has run since it started
0s waits until 5m: a pod must run within 300s of the Job's start
5m condition FailureTarget (StartDeadlineExceeded): No pod of the Job ran before its deadline to start
5m pod 0 deleted: the Job is over
5m waits for pods to end: 0 active, 1 terminating, 0 being created
5m1s condition Failed (StartDeadlineExceeded): No pod of the Job ran before its deadline to start
Failed StartDeadlineExceeded after 5m1s; pods 1
`,
		},
		"a pod runs before the deadline to start": {
			scenario: simulate.Scenario{
				Spec: spec(1, with(&jobpolicyv1.JobOptions{StartDeadlineSeconds: proto.Int64(3)})), Scripts: script(t, "*:succeed@9s"),
			},
			want: `
0s pod 0 created
0s condition jobpolicy.dev/Started=False (NoPodRan): No pod of the Job has run since it started
0s waits until 3s: a pod must run within 3s of the Job's start
1s pod 0 running
1s condition jobpolicy.dev/Started (PodRan): A pod of the Job has run
10s pod 0 succeeded
10s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
10s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 10s; pods 1
`,
		},
	})
}
