package engine_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The engine also decides about tasks that are not pods. They have no namespace and no
// restart policy, their UIDs have other sizes, and a transaction releases and counts them.
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
		Settings:        &jobpolicyv1.Settings{AtomicRelease: true, PodNoun: "task"},
	}
	announced := decide(t, req)
	if s := announced.GetStatus(); s.GetSucceeded() != 1 || s.GetFailed() != 1 || s.GetUncounted() != nil || len(announced.GetRelease()) != 2 {
		t.Errorf("status %v, released %d; want one counted each, both released, no record", s, len(announced.GetRelease()))
	}
	condition := announced.GetStatus().GetConditions()[0]
	if want := "Container sh for task second failed with exit code 42"; !strings.HasPrefix(condition.GetMessage(), want) {
		t.Errorf("condition says %q, want %q", condition.GetMessage(), want)
	}
	if text := announced.GetExplanation().String(); strings.Contains(text, "pods") || !strings.Contains(text, "tasks") {
		t.Errorf("the explanation says pods, or not tasks: %s", text)
	}

	req.UnaccountedPods, req.Status = nil, announced.GetStatus()
	finished := decide(t, req)
	if !is(finished.GetStatus(), failed) {
		t.Errorf("the Job does not end with the next decision: %v", finished)
	}
}

func failJobOn(code int32) *jobpolicyv1.PodFailurePolicy {
	return &jobpolicyv1.PodFailurePolicy{Rules: []*jobpolicyv1.PodFailurePolicyRule{{
		Action:      jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB,
		OnExitCodes: &jobpolicyv1.ExitCodesRequirement{Operator: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN, Values: []int32{code}},
	}}}
}

var saysPod = regexp.MustCompile(`(?i)\bpods?\b`)

// No text of any decision says pod to a caller whose tasks have another name.
func TestNoTextSaysPodToACallerOfTasks(t *testing.T) {
	said := 0
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		req.Settings.PodNoun = "task"
		resp, err := engine.DecideJob(req)
		if err != nil {
			t.Fatal(err)
		}
		err = protorange.Range(resp.ProtoReflect(), func(p protopath.Values) error {
			text, ok := p.Index(-1).Value.Interface().(string)
			if ok && saysPod.MatchString(strings.ReplaceAll(text, "ns/pod", "ns/name")) { // pod is the name that is drawn, too
				return fmt.Errorf("%s says %q", p.Path, text)
			}
			if ok && strings.Contains(text, "task") {
				said++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	if said == 0 {
		t.Error("no text says task")
	}
}
