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

// mistakes are one for each method.
var mistakes = map[string]struct {
	change func(response any)
	want   string // the beginning of a case that finds it
}{
	"GetServerInfo": {
		change: wrong(func(r *jobpolicyv1.GetServerInfoResponse) { r.ContractVersions = nil }),
		want:   "get_server_info, serves",
	},
	"DecideJob": {
		change: wrong(func(r *jobpolicyv1.DecideJobResponse) { r.Delete = nil }),
		want:   "decide_job/removal_ranking, line",
	},
	"DecideJobs": {
		change: wrong(func(r *jobpolicyv1.DecideJobsResponse) { slices.Reverse(r.Results) }),
		want:   "decide_job/removal_ranking, all at once",
	},
	"DecideCronJob": {
		change: wrong(func(r *jobpolicyv1.DecideCronJobResponse) { r.RequeueTime = nil }),
		want:   "decide_cron_job/calendar_hourly, line",
	},
	"DecideCronJobs": {
		change: wrong(func(r *jobpolicyv1.DecideCronJobsResponse) { r.Results = r.Results[1:] }),
		want:   "decide_cron_job/calendar_hourly, all at once",
	},
	"CheckJobStatus": {
		change: wrong(func(r *jobpolicyv1.CheckJobStatusResponse) { r.Violations = r.Violations[:min(1, len(r.Violations))] }),
		want:   "check_job_status/rules, line",
	},
	"CheckJobStatuses": {
		change: wrong(func(r *jobpolicyv1.CheckJobStatusesResponse) { r.Results[0].Result = nil }),
		want:   "check_job_status/rules, all at once",
	},
	"MatchPodFailurePolicy": {
		change: wrong(func(r *jobpolicyv1.MatchPodFailurePolicyResponse) {
			for _, m := range r.Matches {
				if m.Action == jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX {
					m.Action = jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB
				}
			}
		}),
		want: "match_pod_failure_policy/written, line 11: an index may fail by itself",
	},
	"MatchSuccessPolicy": {
		change: wrong(func(r *jobpolicyv1.MatchSuccessPolicyResponse) { r.Message = "" }),
		want:   "match_success_policy/written, line 3: all indexes of a rule",
	},
	"ComputePodBackoff": {
		change: wrong(func(r *jobpolicyv1.ComputePodBackoffResponse) {
			for _, b := range r.Backoffs {
				b.CreateNotBefore = nil
			}
		}),
		want: "compute_pod_backoff/written, line 3: one failure",
	},
	"ChoosePodsToDelete": {
		change: wrong(func(r *jobpolicyv1.ChoosePodsToDeleteResponse) { slices.Reverse(r.Delete) }),
		want:   "choose_pods_to_delete/written, line 9: all of them, in order",
	},
	"ComputeIndexes": {
		change: wrong(func(r *jobpolicyv1.ComputeIndexesResponse) { r.MissingCount = min(r.MissingCount, 3) }),
		want:   "compute_indexes/written, line 9: only the lowest",
	},
	"BatchMatchSuccessPolicy": {
		change: wrong(func(r *jobpolicyv1.BatchMatchSuccessPolicyResponse) { r.Results = r.Results[1:] }),
		want:   "match_success_policy/written, all at once",
	},
	"BatchChoosePodsToDelete": {
		change: wrong(func(r *jobpolicyv1.BatchChoosePodsToDeleteResponse) { slices.Reverse(r.Results) }),
		want:   "choose_pods_to_delete/written, all at once",
	},
	"BatchComputeIndexes": {
		change: wrong(func(r *jobpolicyv1.BatchComputeIndexesResponse) { r.Results[0].Result = nil }),
		want:   "compute_indexes/written, all at once",
	},
	"ComputeDeadlines": {
		change: wrong(func(r *jobpolicyv1.ComputeDeadlinesResponse) {
			for _, d := range r.Deadlines {
				d.Expired = false
			}
		}),
		want: "compute_deadlines/written, line 10: a time to live that is over",
	},
	"ListScheduledRuns": {
		change: wrong(func(r *jobpolicyv1.ListScheduledRunsResponse) {
			for _, runs := range r.Runs {
				slices.Reverse(runs.Missed)
			}
		}),
		want: "list_scheduled_runs/written, line 9: missed times",
	},
}

// This engine is wrong in one thing in every method. The kit finds all of them.
func TestAnEngineThatIsWrongInEveryMethodFails(t *testing.T) {
	all := func(response any) {
		for _, tc := range mistakes {
			tc.change(response)
		}
	}
	results, err := check(t.Context(), wrongEngine{testengine.Start(t, testengine.Config{}).Dial(t), all}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range jobpolicyv1grpc.PolicyService_ServiceDesc.Methods {
		tc, found := mistakes[m.MethodName]
		if !found || !slices.ContainsFunc(results, func(r result) bool { return r.problem != "" && strings.HasPrefix(r.suite+", "+r.name, tc.want) }) {
			t.Errorf("%s: the engine is wrong in it: %t; no failure begins with %q", m.MethodName, found, tc.want)
		}
	}
}
