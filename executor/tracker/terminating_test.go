package tracker

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// A pod that is being deleted for longer than the Job waits counts as a failure for the retry delay, and
// goes on to do so after its release. The deletion is due 30 s after epoch, the deadline passes at 90 s.
func TestPodsThatAreDeletedForTooLong(t *testing.T) {
	deleting, past := deletedAt(epoch, 30), epoch.Add(90*time.Second)
	cases := map[string]struct {
		seen         func(*Job)
		noDeadline   bool
		replacesAll  bool
		now          time.Time
		rows, failed int
		tracked      bool
	}{
		"no deadline":                 {seen: each(podOf(1, 1, tracked, deleting)), noDeadline: true, now: past},
		"before the deadline":         {seen: each(podOf(1, 1, tracked, deleting)), now: past.Add(-1), rows: 1, tracked: true},
		"at the deadline":             {seen: each(podOf(1, 1, tracked, deleting)), now: past, rows: 1, failed: 1, tracked: true},
		"it counted at once":          {seen: each(podOf(1, 1, tracked, deleting)), replacesAll: true, now: past.Add(-1), rows: 1, failed: 1, tracked: true},
		"a restart after its release": {seen: each(podOf(1, 1, deleting)), now: past, rows: 1, failed: 1},
		"released before its deletion": {
			seen: each(podOf(1, 1, tracked), podOf(1, 2), podOf(1, 3, deleting)), now: past, rows: 1,
		},
		"its end": {seen: each(podOf(1, 1, tracked, deleting), podOf(1, 2, tracked, deleting, inPhase(corev1.PodSucceeded))), now: past},
		"it is gone after its release": {
			seen: func(tr *Job) {
				each(podOf(1, 1, tracked, deleting))(tr)
				tr.View(ViewOptions{Options: lostAfterAMinute, Now: past})
				each(podOf(1, 2, deleting))(tr)
				tr.PodGone(uidOf(1), Watch)
			},
			now: past, failed: 1,
		},
		"its deletion is accepted and not shown": {
			seen: func(tr *Job) {
				each(podOf(1, 1, tracked))(tr)
				tr.PodDeleted(uidOf(1))
			},
			now: past,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			tr.SetPolicy(Policy{Policy: podfacts.Policy{ReplaceFailedOnly: !tc.replacesAll}})
			tc.seen(tr)
			o := ViewOptions{Options: lostAfterAMinute, Now: tc.now}
			if tc.noDeadline {
				o.Options = &jobpolicyv1.JobOptions{}
			}
			v := mustView(t, tr, o)
			if len(v.Terminating) != tc.rows || len(v.Retry.GetRecentFailures()) != tc.failed {
				t.Fatalf("%d rows, %d failures; want %d, %d", len(v.Terminating), len(v.Retry.GetRecentFailures()), tc.rows, tc.failed)
			}
			if tc.rows == 1 {
				row := v.Terminating[0]
				if row.GetPodName() != "p1" || row.GetTracked() != tc.tracked || !row.GetDueTime().AsTime().Equal(epoch.Add(30*time.Second)) {
					t.Errorf("row %v, want p1, due 30s after %v, tracked: %v", row, epoch, tc.tracked)
				}
			}
		})
	}
}

var lostAfterAMinute = &jobpolicyv1.JobOptions{TerminationDeadlineSeconds: proto.Int64(60)}

// each shows versions of pods.
func each(pods ...*podcache.Pod) func(*Job) {
	return func(tr *Job) {
		for _, pod := range pods {
			tr.ObservePod(pod, Watch)
		}
	}
}

// With a node that must not be Ready, a pod on one that is Ready, or of which nothing is known, counts as a failure only
// if it may have been given up before. The View knows on which nodes it depends.
func TestNodesOfPodsThatAreDeletedForTooLong(t *testing.T) {
	deleting, past := deletedAt(epoch, 30), epoch.Add(90*time.Second)
	on := func(node string) option { return func(pod *corev1.Pod) { pod.Spec.NodeName = node } }
	states := map[string]jobpolicyv1.NodeState{"ready": jobpolicyv1.NodeState_NODE_STATE_READY, "down": jobpolicyv1.NodeState_NODE_STATE_NOT_READY}
	cases := map[string]struct {
		pod      *podcache.Pod
		recorded []types.UID
		want     jobpolicyv1.NodeState
		fails    bool
	}{
		"its node is Ready":                     {pod: podOf(1, 1, tracked, deleting, on("ready")), want: states["ready"]},
		"its node is not Ready":                 {pod: podOf(1, 1, tracked, deleting, on("down")), want: states["down"], fails: true},
		"nothing is known of its node":          {pod: podOf(1, 1, tracked, deleting, on("other"))},
		"it has no node":                        {pod: podOf(1, 1, tracked, deleting), want: jobpolicyv1.NodeState_NODE_STATE_GONE, fails: true},
		"its node is Ready again, and recorded": {pod: podOf(1, 1, tracked, deleting, on("ready")), recorded: []types.UID{uidOf(1)}, want: states["ready"], fails: true},
		"its node is Ready again, and released": {pod: podOf(1, 1, deleting, on("ready")), want: states["ready"], fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			tr.SetPolicy(Policy{Policy: podfacts.Policy{ReplaceFailedOnly: true}})
			tr.ObservePod(tc.pod, Watch)
			options := proto.CloneOf(lostAfterAMinute)
			options.TerminationDeadlineNode = jobpolicyv1.TerminationDeadlineNode_TERMINATION_DEADLINE_NODE_NOT_READY
			o := ViewOptions{Options: options, Now: past, Uncounted: &batchv1.UncountedTerminatedPods{Failed: tc.recorded}}
			o.Node = func(name string) jobpolicyv1.NodeState { return states[name] }
			v := mustView(t, tr, o)
			if got := v.Terminating[0].GetNode(); got != tc.want || len(v.Retry.GetRecentFailures()) > 0 != tc.fails {
				t.Errorf("node %s, failures %v; want %s, fails: %t", got, v.Retry.GetRecentFailures(), tc.want, tc.fails)
			}
			if node := tc.pod.Node(); !tr.HasRead(node) || !tr.HasRead("") || tr.HasRead("elsewhere") {
				t.Errorf("want that the view depends on node %q, and on no other one", node)
			}
			o.Options = lostAfterAMinute
			if v = mustView(t, tr, o); v.Terminating[0].GetNode() != 0 || len(v.Retry.GetRecentFailures()) != 1 || tr.HasRead("") {
				t.Errorf("without the option: %v, failures %v; want no node, and one failure", v.Terminating[0], v.Retry.GetRecentFailures())
			}
		})
	}
}
