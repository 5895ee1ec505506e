package simulate_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/simulate"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestStoryOfAQuota(t *testing.T) {
	soon := with(&jobpolicyv1.JobOptions{RetryDelay: &jobpolicyv1.RetryDelay{QuotaMaxSeconds: proto.Int32(5)}})
	playEach(t, map[string]storyCase{
		"the delays double up to a minute": {
			scenario: simulate.Scenario{Spec: spec(1), QuotaUntil: 100 * time.Second, Runtime: simulate.Runtime{Mean: 1}},
			want: `
0s the quota refuses new pods; tried again after 1s, at the latest 1m after each refusal
2m3s the quota has room now; it has refused 7 tries
2m3s pod 0 created
2m4s pod 0 running
2m4s pod 0 succeeded
2m4s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
2m4s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 2m4s; pods 1
`,
		},
		"the Job's options make them shorter": {
			scenario: simulate.Scenario{Spec: spec(1, soon), QuotaUntil: 100 * time.Second, Runtime: simulate.Runtime{Mean: 1}},
			want: `
0s the quota refuses new pods; tried again after 1s, at the latest 5s after each refusal
1m42s the quota has room now; it has refused 22 tries
1m42s pod 0 created
1m43s pod 0 running
1m43s pod 0 succeeded
1m43s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
1m43s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 1m43s; pods 1
`,
		},
	})
}

const (
	anyNode  = jobpolicyv1.TerminationDeadlineNode_TERMINATION_DEADLINE_NODE_ANY
	notReady = jobpolicyv1.TerminationDeadlineNode_TERMINATION_DEADLINE_NODE_NOT_READY
)

// gives is a Job of one pod that gives up pods on such nodes, and replaces them only when they have ended.
func gives(node jobpolicyv1.TerminationDeadlineNode) func(*jobpolicyv1.JobSpec) {
	return func(s *jobpolicyv1.JobSpec) {
		s.Completions, s.PodReplacementPolicy = proto.Int32(1), jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_FAILED
		s.Options = &jobpolicyv1.JobOptions{TerminationDeadlineSeconds: proto.Int64(60), TerminationDeadlineNode: node}
	}
}

func TestStoryOfALostNode(t *testing.T) {
	playEach(t, map[string]storyCase{
		"its pod is given up": {
			scenario: simulate.Scenario{Spec: spec(1, gives(notReady)), NodeLost: 30 * time.Second},
			want: `
0s pod 0 created
1s pod 0 running
30s pod 0 lost: the node is not Ready
5m30s pod 0 deleted: its node has not been Ready for 5m
5m30s waits: pods being deleted, which are replaced only when they have ended: 1
5m30s waits until 7m: pod job-0, which is being deleted, counts as failed 60s after its deletion was due, if its node is not Ready
7m pod 1 created
7m pod 0 given up: it has not ended by its termination deadline
7m1s pod 1 running
8m1s pod 1 succeeded
8m1s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
8m1s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 8m1s; pods 2
`,
		},
		"without the option the Job waits": {
			scenario: simulate.Scenario{Spec: spec(1, func(s *jobpolicyv1.JobSpec) {
				s.Completions, s.PodReplacementPolicy = proto.Int32(1), jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_FAILED
			}), NodeLost: 30 * time.Second},
			want: `
0s pod 0 created
1s pod 0 running
30s pod 0 lost: the node is not Ready
5m30s pod 0 deleted: its node has not been Ready for 5m
5m30s waits: pods being deleted, which are replaced only when they have ended: 1
Unfinished  after 5m30s; pods 1
`,
		},
		"back after the pod was given up": {
			scenario: simulate.Scenario{Spec: spec(1, gives(notReady)), NodeLost: 30 * time.Second, NodeBack: 430 * time.Second},
			want: `
0s pod 0 created
1s pod 0 running
30s pod 0 lost: the node is not Ready
5m30s pod 0 deleted: its node has not been Ready for 5m
5m30s waits: pods being deleted, which are replaced only when they have ended: 1
5m30s waits until 7m: pod job-0, which is being deleted, counts as failed 60s after its deletion was due, if its node is not Ready
7m pod 1 created
7m pod 0 given up: it has not ended by its termination deadline
7m1s pod 1 running
7m10s pod 0 back: the node is Ready again
7m10s waits: pods that have not ended 60s after their deletion was due, and that the Job waits for because their nodes are Ready: 1 (job-0, due at 2026-01-01T00:06:00Z)
8m1s pod 1 succeeded
8m1s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
8m1s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 8m1s; pods 2
`,
		},
	})
}

func TestStoryOfANodeThatIsBack(t *testing.T) {
	playEach(t, map[string]storyCase{
		"back before the pod is deleted": {
			scenario: simulate.Scenario{Spec: spec(1, gives(notReady)), NodeLost: 30 * time.Second, NodeBack: 2 * time.Minute},
			want: `
0s pod 0 created
1s pod 0 running
30s pod 0 lost: the node is not Ready
2m pod 0 back: the node is Ready again
2m pod 0 succeeded
2m condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
2m condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 2m; pods 1
`,
		},
		"back while the pod is slow to stop": {
			scenario: simulate.Scenario{Spec: spec(1, gives(notReady)), Scripts: script(t, "0:hang"), NodeLost: 30 * time.Second, NodeBack: 410 * time.Second, StopDelay: 20 * time.Second},
			want: `
0s pod 0 created
1s pod 0 running
30s pod 0 lost: the node is not Ready
5m30s pod 0 deleted: its node has not been Ready for 5m
5m30s waits: pods being deleted, which are replaced only when they have ended: 1
5m30s waits until 7m: pod job-0, which is being deleted, counts as failed 60s after its deletion was due, if its node is not Ready
6m50s pod 0 back: the node is Ready again
7m waits: pods being deleted, which are replaced only when they have ended: 1
7m waits: pods that have not ended 60s after their deletion was due, and that the Job waits for because their nodes are Ready: 1 (job-0, due at 2026-01-01T00:06:00Z)
7m10s waits until 7m20s: failures in a row: 1; next try 10s after the last one
7m20s pod 1 created
7m21s pod 1 running
8m21s pod 1 succeeded
8m21s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
8m21s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 8m21s; pods 2
`,
		},
		"back while the pod is slow to stop, for any node": {
			scenario: simulate.Scenario{Spec: spec(1, gives(anyNode)), Scripts: script(t, "0:hang"), NodeLost: 30 * time.Second, NodeBack: 410 * time.Second, StopDelay: 20 * time.Second},
			want: `
0s pod 0 created
1s pod 0 running
30s pod 0 lost: the node is not Ready
5m30s pod 0 deleted: its node has not been Ready for 5m
5m30s waits: pods being deleted, which are replaced only when they have ended: 1
5m30s waits until 7m: pod job-0, which is being deleted, counts as failed 60s after its deletion was due
6m50s pod 0 back: the node is Ready again
7m pod 1 created
7m pod 0 given up: it has not ended by its termination deadline
7m1s pod 1 running
8m1s pod 1 succeeded
8m1s condition SuccessCriteriaMet (CompletionsReached): Reached expected number of succeeded pods
8m1s condition Complete (CompletionsReached): Reached expected number of succeeded pods
Complete CompletionsReached after 8m1s; pods 2
`,
		},
	})
}

// A quota that never has room ends a play by the bound of restarts and pods, and a node that was not lost is not back.
func TestScenariosOfAClusterThatAreNone(t *testing.T) {
	r, err := simulate.Play(simulate.Scenario{Spec: spec(1), QuotaUntil: simulate.DefaultSpan, MaxPods: 100})
	if want := "the quota refused pods more than 100 times"; err != nil || r.Stopped != want {
		t.Errorf("stopped because %q, error %v, want %q", r.Stopped, err, want)
	}
	cases := map[string]struct {
		lost, back time.Duration
		want       string
	}{
		"never lost":  {0, time.Minute, "node back: expected a time after the node was lost, got 1m, but it never was"},
		"not later":   {time.Minute, time.Minute, "node back: expected a time after the node was lost at 1m, got 1m"},
		"in the past": {-time.Minute, 0, "node lost: must be 0 or more, is -1m0s"},
	}
	for name, tc := range cases {
		if _, err := simulate.Play(simulate.Scenario{Spec: spec(1), NodeLost: tc.lost, NodeBack: tc.back}); err == nil || err.Error() != tc.want {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	if _, err := simulate.Play(simulate.Scenario{Spec: spec(1), QuotaUntil: -1}); err == nil || err.Error() != "quota until: must be 0 or more, is -1ns" {
		t.Errorf("a quota that ends before the play begins: %v", err)
	}
}
