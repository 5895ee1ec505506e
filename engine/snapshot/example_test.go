package snapshot_test

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/snapshot"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Of three tasks that are to succeed, one has, one runs, and one has failed.
func ExampleRequest() {
	now := time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC)
	spec := &jobpolicyv1.JobSpec{
		Parallelism: 3, Completions: new(int32(3)), BackoffLimit: 6,
		RestartPolicy: jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER,
	}
	status := &jobpolicyv1.JobStatus{StartTime: timestamppb.New(now.Add(-time.Minute)), Active: 3}
	uid := func(n byte) []byte { return append(make([]byte, 15), n) }
	ago := func(seconds time.Duration) time.Time { return now.Add(-seconds * time.Second) }
	tasks := []snapshot.Pod{
		{UID: uid(1), Phase: jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, Tracked: true, Finished: ago(9)},
		{UID: uid(2), Phase: jobpolicyv1.PodPhase_POD_PHASE_RUNNING, Tracked: true},
		{UID: uid(3), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, Tracked: true, Finished: ago(4)},
	}
	request := snapshot.Request(spec, status, tasks, snapshot.Options{})
	request.Now = timestamppb.New(now)
	request.Job = &jobpolicyv1.JobRef{Uid: uid(0), Namespace: "local", Name: "three"}
	decision, err := engine.DecideJob(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("create now:", decision.GetCreate().GetCount(), "and look again in", decision.GetRequeueTime().AsTime().Sub(now))
	fmt.Println("recorded:", len(decision.GetStatus().GetUncounted().GetSucceeded()), "succeeded,", len(decision.GetStatus().GetUncounted().GetFailed()), "failed")
	fmt.Println("accounted for, once that is written:", len(decision.GetRelease()))
	// Output:
	// create now: 0 and look again in 6s
	// recorded: 1 succeeded, 1 failed
	// accounted for, once that is written: 2
}
