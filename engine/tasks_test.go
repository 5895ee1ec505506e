package engine_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The engine also decides about tasks that are not pods. They have no namespace and no
// restart policy, and their UIDs have other sizes.
func TestTasks(t *testing.T) {
	tasks := []*jobpolicyv1.UnaccountedPod{
		{Uid: []byte("1"), Phase: jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, FinishedTime: timestamppb.New(epoch)},
		{Uid: []byte("task-2"), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, FinishedTime: timestamppb.New(epoch), Failure: &jobpolicyv1.PodFailure{
			PodName: "second", ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "sh", ExitCode: 42}},
		}},
	}
	req := &jobpolicyv1.DecideJobRequest{
		Now:             timestamppb.New(epoch.Add(time.Second)),
		Job:             &jobpolicyv1.JobRef{Uid: []byte("job"), Name: "tasks"},
		Spec:            &jobpolicyv1.JobSpec{Parallelism: 2, Completions: proto.Int32(2), BackoffLimit: 6, PodFailurePolicy: failJobOn(42)},
		Status:          &jobpolicyv1.JobStatus{StartTime: timestamppb.New(epoch), Active: 2},
		UnaccountedPods: tasks,
	}
	announced := decide(t, req)
	if u := announced.GetStatus().GetUncounted(); len(u.GetSucceeded()) != 1 || len(u.GetFailed()) != 1 || len(announced.GetRelease()) != 2 {
		t.Errorf("uncounted %v, released %d; want one recorded each, both released", u, len(announced.GetRelease()))
	}
	condition := announced.GetStatus().GetConditions()[0]
	if want := "Container sh for pod second failed with exit code 42"; !strings.HasPrefix(condition.GetMessage(), want) {
		t.Errorf("condition says %q, want %q", condition.GetMessage(), want)
	}

	req.UnaccountedPods, req.Status, req.ConfirmedReleases = nil, announced.GetStatus(), announced.GetRelease()
	finished := decide(t, req)
	if s := finished.GetStatus(); !is(s, failed) || s.GetSucceeded() != 1 || s.GetFailed() != 1 {
		t.Errorf("the Job does not end with the next decision, one counted each: %v", finished)
	}
}

func failJobOn(code int32) *jobpolicyv1.PodFailurePolicy {
	return &jobpolicyv1.PodFailurePolicy{Rules: []*jobpolicyv1.PodFailurePolicyRule{{
		Action:      jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB,
		OnExitCodes: &jobpolicyv1.ExitCodesRequirement{Operator: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN, Values: []int32{code}},
	}}}
}
