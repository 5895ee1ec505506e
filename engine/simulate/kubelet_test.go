package simulate_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/simulate"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func one(s *jobpolicyv1.JobSpec) { s.BackoffLimit = 1 }

func TestStoriesOfContainersWithARestartPolicy(t *testing.T) {
	playEach(t, map[string]storyCase{
		"OnFailure beside a pod that is never restarted: restarts do not count": {
			scenario: simulate.Scenario{
				Spec: spec(1, one), Containers: []simulate.Container{{Name: "main", RestartPolicy: "OnFailure"}}, Scripts: script(t, "*:fail(3)@1s"),
			},
			want: `
0s pod 0 created
1s pod 0 running
2s pod 0 container failed: exit code 3; restarted in the pod at once
2s pod 0 container restarted: restart 1
3s pod 0 container failed: exit code 3; restarted in the pod after 10s
13s pod 0 container restarted: restart 2
14s pod 0 container failed: exit code 3; restarted in the pod after 20s
34s pod 0 container restarted: restart 3
Unfinished  after 34s; pods 1
`,
		},
		"a container that is always restarted keeps its pod running": {
			scenario: simulate.Scenario{
				Spec:       spec(1, one, func(s *jobpolicyv1.JobSpec) { s.ActiveDeadlineSeconds = proto.Int64(20) }),
				Containers: []simulate.Container{{Name: "main"}, {Name: "ui", RestartPolicy: "Always"}},
				Scripts:    script(t, "*:succeed@5s"),
			},
			want: `
0s pod 0 created
1s pod 0 running
6s pod 0 container main ended: exit code 0
6s pod 0 container ui ended: exit code 0; restarted in the pod at once
6s pod 0 container ui restarted: restart 1
11s pod 0 container ui ended: exit code 0; restarted in the pod after 10s
20s condition FailureTarget (DeadlineExceeded): Job was active longer than specified deadline
20s pod 0 deleted: the Job is over
20s waits for pods to end: 0 active, 1 terminating, 0 being created
21s condition Failed (DeadlineExceeded): Job was active longer than specified deadline
Failed DeadlineExceeded after 21s; pods 1
`,
		},
		"where the pod is restarted on failure, successes of such a container count, too": {
			scenario: simulate.Scenario{
				Spec:       spec(1, one, func(s *jobpolicyv1.JobSpec) { s.RestartPolicy = onFailure }),
				Containers: []simulate.Container{{Name: "main", RestartPolicy: "Always"}}, Scripts: script(t, "*:succeed@5s"),
			},
			want: `
0s pod 0 created
1s pod 0 running
6s pod 0 container ended: exit code 0; restarted in the pod at once
6s pod 0 container restarted: restart 1
6s condition FailureTarget (BackoffLimitExceeded): Job has reached the specified backoff limit
6s pod 0 deleted: the Job is over
6s waits for pods to end: 0 active, 1 terminating, 0 being created
7s condition Failed (BackoffLimitExceeded): Job has reached the specified backoff limit
Failed BackoffLimitExceeded after 7s; pods 1
`,
		},
	})
}

func TestStoryOfARestartRule(t *testing.T) {
	playEach(t, map[string]storyCase{
		"it restarts on some exit codes; the others end the pod": {
			scenario: simulate.Scenario{
				Spec: spec(1, func(s *jobpolicyv1.JobSpec) { s.BackoffLimit = 0 }), Scripts: script(t, "*:fail(42)@1s,fail(42)@1s,fail(7)@1s"),
				Containers: []simulate.Container{{Name: "main", RestartPolicy: "Never", RestartRules: []simulate.RestartRule{{ExitCodes: []int32{42}}}}},
			},
			want: `
0s pod 0 created
1s pod 0 running
2s pod 0 container failed: exit code 42; restarted in the pod at once
2s pod 0 container restarted: restart 1
3s pod 0 container failed: exit code 42; restarted in the pod after 10s
13s pod 0 container restarted: restart 2
14s pod 0 failed: exit code 7
14s condition FailureTarget (BackoffLimitExceeded): Job has reached the specified backoff limit
14s condition Failed (BackoffLimitExceeded): Job has reached the specified backoff limit
Failed BackoffLimitExceeded after 14s; pods 1
`,
		},
	})
}

func TestStoriesOfPods(t *testing.T) {
	setup := []simulate.Container{
		{Name: "proxy", Init: true, RestartPolicy: "Always"}, {Name: "setup", Init: true}, {Name: "main"},
	}
	playEach(t, map[string]storyCase{
		"an init container that fails ends the pod, when its sidecar has ended": {
			scenario: simulate.Scenario{
				Spec: spec(1, func(s *jobpolicyv1.JobSpec) { s.BackoffLimit = 0 }), Containers: setup, Scripts: script(t, "0/setup:fail(3)@2s"),
			},
			want: `
0s pod 0 created
3s pod 0 container setup failed: exit code 3
4s pod 0 failed: container setup ended with exit code 3
4s condition FailureTarget (BackoffLimitExceeded): Job has reached the specified backoff limit
4s condition Failed (BackoffLimitExceeded): Job has reached the specified backoff limit
Failed BackoffLimitExceeded after 4s; pods 1
`,
		},
		"a sidecar restarts, and the pod ends after the main container": {
			scenario: simulate.Scenario{Spec: spec(1, one), Containers: setup, Scripts: script(t, "0/proxy:fail@10s,hang", "0:succeed@20s")},
			want: `
0s pod 0 created
1s pod 0 running
11s pod 0 container proxy failed: exit code 1; restarted in the pod at once
11s pod 0 container proxy restarted: restart 1
21s pod 0 container main ended: exit code 0
22s pod 0 succeeded
22s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
22s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 22s; pods 1
`,
		},
		"a pod past its deadline fails, is replaced, and what does not end in time is killed": {
			scenario: simulate.Scenario{
				Spec: spec(1, one), PodDeadline: 20 * time.Second, GracePeriod: time.Second, StopDelay: time.Minute, Scripts: script(t, "*:hang"),
			},
			want: `
0s pod 0 created
1s pod 0 running
20s pod 0 past its deadline: activeDeadlineSeconds of the pod is 20
22s pod 0 failed: DeadlineExceeded, exit code 137
22s waits until 32s: failures in a row: 1; next try 10s after the last one
32s pod 1 created
33s pod 1 running
52s pod 1 past its deadline: activeDeadlineSeconds of the pod is 20
54s pod 1 failed: DeadlineExceeded, exit code 137
54s condition FailureTarget (BackoffLimitExceeded): Job has reached the specified backoff limit
54s condition Failed (BackoffLimitExceeded): Job has reached the specified backoff limit
Failed BackoffLimitExceeded after 54s; pods 2
`,
		},
		"a deadline also ends a pod that does not start": {
			scenario: simulate.Scenario{
				Spec: spec(1, func(s *jobpolicyv1.JobSpec) { s.BackoffLimit = 0 }), PodDeadline: 5 * time.Second, Scripts: script(t, "*:stuck"),
			},
			want: `
0s pod 0 created
5s pod 0 past its deadline: activeDeadlineSeconds of the pod is 5
5s pod 0 failed: DeadlineExceeded, exit code 137
5s condition FailureTarget (BackoffLimitExceeded): Job has reached the specified backoff limit
5s condition Failed (BackoffLimitExceeded): Job has reached the specified backoff limit
Failed BackoffLimitExceeded after 5s; pods 1
`,
		},
	})
}

func TestStoriesOfPodsWhoseJobFails(t *testing.T) {
	playEach(t, map[string]storyCase{
		"a pod that runs when its Job fails is ended, and stays": {
			scenario: simulate.Scenario{
				Spec: spec(2, func(s *jobpolicyv1.JobSpec) {
					s.BackoffLimit = 0
					s.Options = &jobpolicyv1.JobOptions{WhenJobFails: jobpolicyv1.WhenJobFails_WHEN_JOB_FAILS_END_PODS}
				}),
				Scripts: script(t, "0:fail@5s", "1:hang"), PodDeadline: time.Hour, StopDelay: 3 * time.Second, GracePeriod: 30 * time.Second,
			},
			want: `
0s 2 pods created (pod 0,1)
1s 2 pods running (pod 0,1)
6s pod 0 failed: exit code 1
6s condition FailureTarget (BackoffLimitExceeded): Job has reached the specified backoff limit
6s pod 1 told to end: the Job is over, and the logs stay
6s waits until 1m36s: pods that their nodes end, so that their logs stay: 1; pod job-1 is deleted if it has not ended by then
6s waits for pods to end: 1 active, 0 terminating, 0 being created
9s pod 1 failed: DeadlineExceeded, exit code 143
9s condition Failed (BackoffLimitExceeded): Job has reached the specified backoff limit
Failed BackoffLimitExceeded after 9s; pods 2
`,
		},
	})
}

// A pod whose deadline is over before its sidecar has ended fails, although its work is done.
func TestADeadlineWhileASidecarEnds(t *testing.T) {
	r, err := simulate.Play(simulate.Scenario{
		Spec: spec(1, func(s *jobpolicyv1.JobSpec) { s.BackoffLimit = 0 }), PodDeadline: 10 * time.Second, StopDelay: 2 * time.Second,
		Containers: []simulate.Container{{Name: "proxy", Init: true, RestartPolicy: "Always"}, {Name: "main"}}, Scripts: script(t, "0:succeed@8s"),
	})
	if err != nil || r.Verdict != "Failed" || r.Pods[0].Outcome != "failed" {
		t.Errorf("error %v, story\n%s", err, story(r))
	}
}

// A play in which containers restart for ever ends, and says why the Job does not.
func TestEndlessRestarts(t *testing.T) {
	sc := simulate.Scenario{
		Spec: spec(1, one), Containers: []simulate.Container{{Name: "main"}, {Name: "ui", RestartPolicy: "Always"}}, Scripts: script(t, "*:hang"),
	}
	r, err := simulate.Play(sc)
	if err != nil || r.Verdict != simulate.Unfinished || !strings.HasPrefix(r.Stopped, "container ui is restarted for ever") {
		t.Errorf("verdict %s (%s), error %v", r.Verdict, r.Stopped, err)
	}
	sc.MaxPods, sc.Changes = 10, []simulate.Change{{At: 24 * time.Hour, Delete: true}}
	r, err = simulate.Play(sc)
	if want := "containers were restarted more than 10 times"; err != nil || r.Stopped != want {
		t.Errorf("stopped %q, want %q (error %v)", r.Stopped, want, err)
	}
}

// The delays between restarts double up to 5 minutes, and a long run resets them.
func TestRestartDelays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"*:fail@1s,fail@1s,fail@10m1s,fail@1s,succeed@1s":                              10*time.Second + 10*time.Second + 10*time.Minute + 5*time.Second,
		"*:fail@1s,fail@1s,fail@1s,fail@1s,fail@1s,fail@1s,fail@1s,fail@1s,succeed@1s": (10+20+40+80+160+300+300)*time.Second + 9*time.Second,
	} {
		r, err := simulate.Play(simulate.Scenario{
			Spec: spec(1, func(s *jobpolicyv1.JobSpec) { s.RestartPolicy, s.BackoffLimit = onFailure, 9 }), Scripts: script(t, text),
		})
		if err != nil {
			t.Fatal(err)
		}
		if want += simulate.DefaultStartDelay; r.Verdict != "Complete" || r.Makespan != want {
			t.Errorf("%s after %s, want Complete after %s\n%s", r.Verdict, r.Makespan, want, story(r))
		}
	}
}

func TestScriptsOfContainers(t *testing.T) {
	for text, want := range map[string]string{
		"0/other:fail":        `the pods have no container "other"`,
		"0/main:fail,succeed": "a pod of this Job runs once",
	} {
		_, err := simulate.Play(simulate.Scenario{Spec: spec(1), Scripts: script(t, text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}
