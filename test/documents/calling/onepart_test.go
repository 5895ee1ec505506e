package calling

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Two parts of a decision, each asked by itself: a pod has failed with exit code 42, as the second one in a row. No rule
// of the policy matches, so the failure counts, and the next pod waits 20 seconds from it.
func Example_onePart() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	policy := &jobpolicyv1.PodFailurePolicy{Rules: []*jobpolicyv1.PodFailurePolicyRule{{
		Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB,
		OnExitCodes: &jobpolicyv1.ExitCodesRequirement{
			Operator: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN, Values: []int32{1},
		},
	}}}
	failure := &jobpolicyv1.PodFailure{
		PodName:        "train-7",
		ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "main", ExitCode: 42}},
	}

	matches, err := engine.MatchPodFailurePolicy(&jobpolicyv1.MatchPodFailurePolicyRequest{
		Policy: policy, Namespace: "default", Failures: []*jobpolicyv1.PodFailure{failure},
	})
	check(err)
	fmt.Println(matches.Matches[0].Action)

	backoff, err := engine.ComputePodBackoff(&jobpolicyv1.ComputePodBackoffRequest{
		Now: timestamppb.New(now), Policy: policy,
		Histories: []*jobpolicyv1.FailureHistory{{Retry: &jobpolicyv1.RetryFacts{RecentFailures: []*jobpolicyv1.PodFailureFact{
			{FinishedTime: timestamppb.New(now.Add(-time.Minute))},
			{FinishedTime: timestamppb.New(now.Add(-time.Second)), Failure: failure},
		}}}},
	})
	check(err)
	b := backoff.Backoffs[0]
	fmt.Println(b.ConsecutiveFailures, "failures in a row, next pod at", b.CreateNotBefore.AsTime().Format(time.TimeOnly))
	// Output:
	// POD_FAILURE_POLICY_ACTION_COUNT
	// 2 failures in a row, next pod at 12:00:19
}
