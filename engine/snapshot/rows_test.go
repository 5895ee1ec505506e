package snapshot_test

import (
	"encoding/binary"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/snapshot"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Each of 60,000 indexes has two failed pods. A request cannot list all of them, and it
// lists both of an index or none: those of recorded pods first, then those that have waited longest.
func TestSiblingsFitIntoARequest(t *testing.T) {
	const indexes = 60_000
	now := time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC)
	spec := &jobpolicyv1.JobSpec{
		Parallelism: 10, Completions: new(int32(indexes)), CompletionMode: jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED,
		BackoffLimit: 1<<31 - 1, BackoffLimitPerIndex: new(int32(5)), RestartPolicy: jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER,
	}
	uid := func(n int) []byte { return binary.BigEndian.AppendUint64(make([]byte, 8), uint64(n)) }
	var pods []snapshot.Pod
	for n := range 2 * indexes {
		pods = append(pods, snapshot.Pod{
			UID: uid(n + 1), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, Tracked: true, Finished: now,
			Index: new(int32(n % indexes)),
		})
	}
	status := &jobpolicyv1.JobStatus{
		StartTime: timestamppb.New(now), Uncounted: &jobpolicyv1.UncountedTerminatedPods{Failed: [][]byte{uid(indexes)}},
	}
	request := snapshot.Request(spec, status, pods, snapshot.Options{})
	request.Now = timestamppb.New(now)
	request.Job = &jobpolicyv1.JobRef{Uid: uid(0), Namespace: "local", Name: "siblings"}
	if _, err := engine.DecideJob(request); err != nil {
		t.Error(err)
	}
	rows := map[int32]int{}
	for _, row := range request.GetUnaccountedPods() {
		rows[row.GetIndex()]++
	}
	for index, n := range rows {
		if n != 2 {
			t.Errorf("index %d has %d rows, want both pods or none", index, n)
		}
	}
	if len(rows) != 50_000 || rows[0] == 0 || rows[indexes-1] == 0 || rows[indexes-2] != 0 {
		t.Errorf("%d indexes have rows, want the recorded one and as many as fit: 50000", len(rows))
	}
	if listed, unlisted := len(request.GetUnaccountedPods()), int(request.GetUnlistedPods().GetFailed()); listed+unlisted != 2*indexes {
		t.Errorf("%d pods are listed and %d are counted, want %d together", listed, unlisted, 2*indexes)
	}
}
