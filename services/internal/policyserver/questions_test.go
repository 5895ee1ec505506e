package policyserver_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

type policyClient = jobpolicyv1grpc.PolicyServiceClient

// A questionCase is a question, put to the engine in this process and to a server.
type questionCase struct {
	inProcess func() (proto.Message, error)
	remote    func(context.Context, policyClient) (proto.Message, error)
	// refused puts one that names badField.
	refused  func(context.Context, policyClient) error
	badField string
}

func questionOf[Req, Resp proto.Message](
	engineFunc func(Req) (Resp, error), rpc func(policyClient, context.Context, Req, ...grpc.CallOption) (Resp, error),
	good, bad Req, badField string,
) questionCase {
	return questionCase{
		inProcess: func() (proto.Message, error) { return engineFunc(good) },
		remote:    func(ctx context.Context, c policyClient) (proto.Message, error) { return rpc(c, ctx, good) },
		refused: func(ctx context.Context, c policyClient) error {
			_, err := rpc(c, ctx, bad)
			return err
		},
		badField: badField,
	}
}

func questionCases() map[string]questionCase {
	exit := &jobpolicyv1.PodFailure{PodName: "pi-x", ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "main", ExitCode: 42}}}
	policy := &jobpolicyv1.PodFailurePolicy{Rules: []*jobpolicyv1.PodFailurePolicyRule{{
		Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB,
		OnExitCodes: &jobpolicyv1.ExitCodesRequirement{
			Operator: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN, Values: []int32{42},
		},
	}}}
	now := timestamppb.New(testenv.Now)
	failedNow := &jobpolicyv1.FailureHistory{Retry: &jobpolicyv1.RetryFacts{RecentFailures: []*jobpolicyv1.PodFailureFact{{FinishedTime: now}}}}
	return map[string]questionCase{
		"CheckJobStatus": questionOf(engine.CheckJobStatus, policyClient.CheckJobStatus,
			check(), &jobpolicyv1.CheckJobStatusRequest{}, "kubernetes_minor"),
		"MatchPodFailurePolicy": questionOf(engine.MatchPodFailurePolicy, policyClient.MatchPodFailurePolicy,
			&jobpolicyv1.MatchPodFailurePolicyRequest{Policy: policy, Namespace: "default", Failures: []*jobpolicyv1.PodFailure{exit}},
			&jobpolicyv1.MatchPodFailurePolicyRequest{Policy: &jobpolicyv1.PodFailurePolicy{Rules: []*jobpolicyv1.PodFailurePolicyRule{{}}}},
			"policy.rules[0].action"),
		"MatchSuccessPolicy": questionOf(engine.MatchSuccessPolicy, policyClient.MatchSuccessPolicy,
			&jobpolicyv1.MatchSuccessPolicyRequest{Jobs: []*jobpolicyv1.SuccessPolicyProgress{{
				Policy:      &jobpolicyv1.SuccessPolicy{Rules: []*jobpolicyv1.SuccessPolicyRule{{SucceededCount: proto.Int32(1)}}},
				Completions: 3, SucceededIndexes: ranges(2, 2),
			}}},
			&jobpolicyv1.MatchSuccessPolicyRequest{Jobs: []*jobpolicyv1.SuccessPolicyProgress{{Completions: -1}}}, "jobs[0].completions"),
		"ComputePodBackoff": questionOf(engine.ComputePodBackoff, policyClient.ComputePodBackoff,
			&jobpolicyv1.ComputePodBackoffRequest{Now: now, Histories: []*jobpolicyv1.FailureHistory{failedNow}},
			&jobpolicyv1.ComputePodBackoffRequest{}, "now"),
		"ChoosePodsToDelete": questionOf(engine.ChoosePodsToDelete, policyClient.ChoosePodsToDelete,
			&jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: []*jobpolicyv1.ScaleDown{{
				Pods: []*jobpolicyv1.ActivePod{{Uid: testenv.UID(2), Phase: jobpolicyv1.PodPhase_POD_PHASE_PENDING}}, Excess: 1,
			}}},
			&jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: []*jobpolicyv1.ScaleDown{{Excess: -1}}}, "jobs[0].excess"),
		"ComputeIndexes": questionOf(engine.ComputeIndexes, policyClient.ComputeIndexes,
			&jobpolicyv1.ComputeIndexesRequest{Jobs: []*jobpolicyv1.JobIndexes{{Completions: 5, CompletedIndexes: ranges(1, 2)}}},
			&jobpolicyv1.ComputeIndexesRequest{Jobs: []*jobpolicyv1.JobIndexes{{BusyIndexes: ranges(2, 1)}}}, "jobs[0].busy_indexes.ranges"),
		"ComputeDeadlines": questionOf(engine.ComputeDeadlines, policyClient.ComputeDeadlines,
			&jobpolicyv1.ComputeDeadlinesRequest{
				Now: now, Jobs: []*jobpolicyv1.JobLifetime{{Spec: &jobpolicyv1.JobSpec{ActiveDeadlineSeconds: proto.Int64(5)}}},
			},
			&jobpolicyv1.ComputeDeadlinesRequest{Now: now, Jobs: []*jobpolicyv1.JobLifetime{{}}}, "jobs[0].spec"),
		"ListScheduledRuns": questionOf(cronjob.ListScheduledRuns, policyClient.ListScheduledRuns,
			&jobpolicyv1.ListScheduledRunsRequest{
				Now: now, Schedules: []*jobpolicyv1.ScheduleHistory{{Spec: testenv.CronJobSnapshot().GetSpec()}},
			},
			&jobpolicyv1.ListScheduledRunsRequest{Now: now, MaxNext: 101}, "max_next"),
	}
}

func TestQuestionsAreAnsweredAsInProcess(t *testing.T) {
	client := jobpolicyv1grpc.NewPolicyServiceClient(testengine.Start(t, testengine.Config{}).Dial(t))
	for name, q := range questionCases() {
		t.Run(name, func(t *testing.T) {
			want, err := q.inProcess()
			if err != nil || proto.Size(want) == 0 {
				t.Fatalf("in process: %v, %v, want an answer", want, err)
			}
			got, err := q.remote(patient(t), client)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("answer (-in process +remote):\n%s", diff)
			}
			assertInvalid(t, q.refused(patient(t), client), q.badField)
		})
	}
}

// What the contract has, the server serves.
func TestEveryMethodIsServed(t *testing.T) {
	conn := testengine.Start(t, testengine.Config{}).Dial(t)
	for _, m := range jobpolicyv1grpc.PolicyService_ServiceDesc.Methods {
		err := sendRaw(patient(t), conn, "/"+jobpolicyv1grpc.PolicyService_ServiceDesc.ServiceName+"/"+m.MethodName, nil)
		if code := status.Code(err); code != codes.OK && code != codes.InvalidArgument {
			t.Errorf("%s of an empty message: %v, want an answer or INVALID_ARGUMENT", m.MethodName, err)
		}
	}
}
