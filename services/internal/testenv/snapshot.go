package testenv

import (
	"bytes"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Now is the time of Snapshot.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// UID returns 16 bytes, all b.
func UID(b byte) []byte { return bytes.Repeat([]byte{b}, 16) }

// Snapshot is a valid request: a new Job with two completions and no pods.
func Snapshot() *jobpolicyv1.DecideJobRequest {
	return &jobpolicyv1.DecideJobRequest{
		RequestId: "request-1",
		Now:       timestamppb.New(Now),
		Job:       &jobpolicyv1.JobRef{Uid: UID(1), Namespace: "default", Name: "pi", Generation: 1},
		Spec: &jobpolicyv1.JobSpec{
			CompletionMode: jobpolicyv1.CompletionMode_COMPLETION_MODE_NON_INDEXED,
			Parallelism:    2,
			Completions:    proto.Int32(2),
			BackoffLimit:   6,
			RestartPolicy:  jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER,
		},
	}
}

// FailedSnapshot is a valid request: a Job whose only pod failed, and whose
// backoffLimit allows no failure.
func FailedSnapshot() *jobpolicyv1.DecideJobRequest {
	req := Snapshot()
	req.Spec.BackoffLimit = 0
	req.Status = &jobpolicyv1.JobStatus{StartTime: timestamppb.New(Now.Add(-time.Minute)), Active: 1}
	req.UnaccountedPods = []*jobpolicyv1.UnaccountedPod{{
		Uid:          UID(2),
		Phase:        jobpolicyv1.PodPhase_POD_PHASE_FAILED,
		FinishedTime: timestamppb.New(Now.Add(-time.Second)),
	}}
	return req
}

// CronJobSnapshot is a valid request: a CronJob whose run of noon is due.
func CronJobSnapshot() *jobpolicyv1.DecideCronJobRequest {
	return &jobpolicyv1.DecideCronJobRequest{
		RequestId: "request-2",
		Now:       timestamppb.New(Now),
		CronJob:   &jobpolicyv1.CronJobRef{Uid: UID(3), Namespace: "default", Name: "report", Generation: 1},
		Spec: &jobpolicyv1.CronJobSpec{
			Schedule:     "0 * * * *",
			CreationTime: timestamppb.New(Now.Add(-time.Minute)),
		},
	}
}
