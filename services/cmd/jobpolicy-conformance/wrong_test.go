package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
)

// A wrongEngine is ours, with answers that are changed.
type wrongEngine struct {
	grpc.ClientConnInterface
	change func(response any)
}

func (w wrongEngine) Invoke(ctx context.Context, method string, request, response any, opts ...grpc.CallOption) error {
	err := w.ClientConnInterface.Invoke(ctx, method, request, response, opts...)
	if err == nil {
		w.change(response)
	}
	return err
}

func wrong[Resp any](change func(Resp)) func(any) {
	return func(response any) {
		if r, ok := response.(Resp); ok {
			change(r)
		}
	}
}

// This engine is wrong in one thing in every method. The kit finds all of them.
func TestAnEngineThatIsWrongInEveryMethodFails(t *testing.T) {
	const failIndex, failJob = jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX, jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB
	cases := map[string]struct {
		change func(any)
		want   string // The beginning of a case that finds it.
	}{
		"GetServerInfo": {wrong(func(r *jobpolicyv1.GetServerInfoResponse) { r.ContractVersions = nil }), "get_server_info, serves"},
		"DecideJob":     {wrong(func(r *jobpolicyv1.DecideJobResponse) { r.Delete = nil }), "decide_job/removal_ranking, line"},
		"DecideJobs": {
			wrong(func(r *jobpolicyv1.DecideJobsResponse) { slices.Reverse(r.Results) }), "decide_job/removal_ranking, all at once",
		},
		"DecideCronJob": {wrong(func(r *jobpolicyv1.DecideCronJobResponse) { r.RequeueTime = nil }), "decide_cron_job/calendar_hourly, line"},
		"DecideCronJobs": {
			wrong(func(r *jobpolicyv1.DecideCronJobsResponse) { r.Results = r.Results[1:] }), "decide_cron_job/calendar_hourly, all at once",
		},
		"CheckJobStatus": {
			wrong(func(r *jobpolicyv1.CheckJobStatusResponse) { r.Violations = r.Violations[:min(1, len(r.Violations))] }), "check_job_status/rules, line",
		},
		"CheckJobStatuses": {
			wrong(func(r *jobpolicyv1.CheckJobStatusesResponse) { r.Results[0].Result = nil }), "check_job_status/rules, all at once",
		},
		"MatchPodFailurePolicy": {wrong(func(r *jobpolicyv1.MatchPodFailurePolicyResponse) {
			for _, m := range r.Matches {
				if m.Action == failIndex {
					m.Action = failJob
				}
			}
		}), "match_pod_failure_policy/written, line 11: an index may fail by itself"},
		"MatchSuccessPolicy": {wrong(func(r *jobpolicyv1.MatchSuccessPolicyResponse) { r.Message = "" }), "match_success_policy/written, line 3: all indexes of a rule"},
		"ComputePodBackoff": {wrong(func(r *jobpolicyv1.ComputePodBackoffResponse) {
			for _, b := range r.Backoffs {
				b.CreateNotBefore = nil
			}
		}), "compute_pod_backoff/written, line 3: one failure"},
		"ChoosePodsToDelete": {
			wrong(func(r *jobpolicyv1.ChoosePodsToDeleteResponse) { slices.Reverse(r.Delete) }), "choose_pods_to_delete/written, line 9: all of them, in order",
		},
		"ComputeIndexes": {wrong(func(r *jobpolicyv1.ComputeIndexesResponse) { r.MissingCount = min(r.MissingCount, 3) }), "compute_indexes/written, line 9: only the lowest"},
		"BatchMatchSuccessPolicy": {
			wrong(func(r *jobpolicyv1.BatchMatchSuccessPolicyResponse) { r.Results = r.Results[1:] }), "match_success_policy/written, all at once",
		},
		"BatchChoosePodsToDelete": {
			wrong(func(r *jobpolicyv1.BatchChoosePodsToDeleteResponse) { slices.Reverse(r.Results) }), "choose_pods_to_delete/written, all at once",
		},
		"BatchComputeIndexes": {
			wrong(func(r *jobpolicyv1.BatchComputeIndexesResponse) { r.Results[0].Result = nil }), "compute_indexes/written, all at once",
		},
		"ComputeDeadlines": {wrong(func(r *jobpolicyv1.ComputeDeadlinesResponse) {
			for _, d := range r.Deadlines {
				d.Expired = false
			}
		}), "compute_deadlines/written, line 10: a time to live that is over"},
		"ListScheduledRuns": {wrong(func(r *jobpolicyv1.ListScheduledRunsResponse) {
			for _, runs := range r.Runs {
				slices.Reverse(runs.Missed)
			}
		}), "list_scheduled_runs/written, line 9: missed times"},
	}
	all := func(response any) {
		for _, tc := range cases {
			tc.change(response)
		}
	}
	results, err := check(t.Context(), wrongEngine{testengine.Start(t, testengine.Config{}).Dial(t), all}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range jobpolicyv1grpc.PolicyService_ServiceDesc.Methods {
		tc, found := cases[m.MethodName]
		if !found || !slices.ContainsFunc(results, func(r result) bool { return r.problem != "" && strings.HasPrefix(r.suite+", "+r.name, tc.want) }) {
			t.Errorf("%s: the engine is wrong in it: %t; no failure begins with %q", m.MethodName, found, tc.want)
		}
	}
}
