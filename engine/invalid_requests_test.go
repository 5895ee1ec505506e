package engine_test

import (
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// An invalidRequest is a change that makes validRequest invalid.
type invalidRequest struct {
	name   string
	field  string // the field that is named
	says   string // part of what is said about it
	change func(*request)
}

func long(n int) string { return strings.Repeat("x", n) }

// ranges is an index set of the ranges from the first to the second bound, and so on.
func ranges(bounds ...int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for i := 0; i < len(bounds); i += 2 {
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: bounds[i], Last: bounds[i+1]})
	}
	return set
}

// invalidJobs are mistakes in what a request says of the Job itself.
var invalidJobs = []invalidRequest{
	{"a request id that is too long", "request_id", "at most 128 bytes, has 129", func(r *request) { r.RequestId = long(129) }},
	{"no time", "now", "is required", func(r *request) { r.Now = nil }},
	{"a time that is none", "now", "between the years 1 and 9999", func(r *request) { r.Now = badTime() }},
	{"no job", "job", "is required", func(r *request) { r.Job = nil }},
	{"a job without UID", "job.uid", "must have 1 to 64 bytes, has 0", func(r *request) { r.Job.Uid = nil }},
	{"a job UID that is too long", "job.uid", "must have 1 to 64 bytes, has 65", func(r *request) { r.Job.Uid = make([]byte, 65) }},
	{"a long namespace", "job.namespace", "0 to 253 bytes, has 254", func(r *request) { r.Job.Namespace = long(254) }},
	{"a name that is too long", "job.name", "1 to 253 bytes, has 254", func(r *request) { r.Job.Name = long(254) }},
	{"a name of nothing", "job.name", "1 to 253 bytes, has 0", func(r *request) { r.Job.Name = "" }},
	{"a negative generation", "job.generation", "must not be negative, is -1", func(r *request) { r.Job.Generation = -1 }},
}

// invalidOptions are mistakes in the options.
var invalidOptions = []invalidRequest{
	{
		"a retry delay of nothing", "spec.options.retry_delay.initial_seconds", "expected a whole number from 1 to 86400, found 0",
		retryDelay(&jobpolicyv1.RetryDelay{InitialSeconds: proto.Int32(0)}),
	},
	{
		"a longest retry delay that is shorter than the first", "spec.options.retry_delay.max_seconds", "expected at least initial_seconds (20), found 10",
		retryDelay(&jobpolicyv1.RetryDelay{InitialSeconds: proto.Int32(20), MaxSeconds: proto.Int32(10)}),
	},
	{
		"retry delays that get shorter", "spec.options.retry_delay.factor", "expected a number from 1 to 10, found 0.5",
		retryDelay(&jobpolicyv1.RetryDelay{Factor: proto.Float64(0.5)}),
	},
	{
		"a factor that is none", "spec.options.retry_delay.factor", "expected a number from 1 to 10, found NaN",
		retryDelay(&jobpolicyv1.RetryDelay{Factor: proto.Float64(math.NaN())}),
	},
	{
		"retry delays in two ways", "spec.options.retry_delay.delays_seconds", "cannot be set together with any of initial_seconds, max_seconds, factor",
		retryDelay(&jobpolicyv1.RetryDelay{DelaysSeconds: []int32{5}, Factor: proto.Float64(1)}),
	},
	{
		"a retry delay of days in a list", "spec.options.retry_delay.delays_seconds[1]", "expected a whole number from 1 to 86400, found 86401",
		retryDelay(&jobpolicyv1.RetryDelay{DelaysSeconds: []int32{5, 86401}}),
	},
	{
		"too many retry delays", "spec.options.retry_delay.delays_seconds", "expected a list of 0 to 64 items, found 65",
		retryDelay(&jobpolicyv1.RetryDelay{DelaysSeconds: slices.Repeat([]int32{5}, 65)}),
	},
	{
		"a deadline to start of nothing", "spec.options.start_deadline_seconds", "expected a whole number of at least 1, found 0",
		func(r *request) { r.Spec.Options = &jobpolicyv1.JobOptions{StartDeadlineSeconds: proto.Int64(0)} },
	},
	{
		"a deadline of a try that no pod may have", "spec.options.try_deadline_seconds", "expected a whole number from 1 to 2147483647, found 2147483648",
		func(r *request) { r.Spec.Options = &jobpolicyv1.JobOptions{TryDeadlineSeconds: proto.Int64(1 << 31)} },
	},
	{
		"a factor that raises nothing", "spec.options.next_try_resources.factor", "expected more than 1, found 1",
		nextTry(&jobpolicyv1.NextTryResources{Resource: jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY, Max: "8Gi", Factor: proto.Float64(1)}),
	},
	{
		"a maximum that is no quantity", "spec.options.next_try_resources.max", "expected a Kubernetes quantity above 0, for example 8Gi, found \"8GB\"",
		nextTry(&jobpolicyv1.NextTryResources{Resource: jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY, Max: "8GB"}),
	},
	{
		"more CPU after nothing", "spec.options.next_try_resources.on_exit_codes", "expected at least one exit code",
		nextTry(&jobpolicyv1.NextTryResources{Resource: jobpolicyv1.RaisedResource_RAISED_RESOURCE_CPU, Max: "8"}),
	},
	{
		"more of nothing", "spec.options.next_try_resources.resource", "is required",
		nextTry(&jobpolicyv1.NextTryResources{Max: "8"}),
	},
	{
		"a delay of nothing after a quota refused pods", "spec.options.retry_delay.quota_max_seconds", "expected a whole number from 1 to 86400, found 0",
		retryDelay(&jobpolicyv1.RetryDelay{QuotaMaxSeconds: proto.Int32(0)}),
	},
	{
		"jitter of more than all", "spec.options.retry_delay.jitter_percent", "expected a whole number from 0 to 100, found 101",
		retryDelay(&jobpolicyv1.RetryDelay{JitterPercent: proto.Int32(101)}),
	},
}

func nextTry(n *jobpolicyv1.NextTryResources) func(*request) {
	return func(r *request) { r.Spec.Options = &jobpolicyv1.JobOptions{NextTryResources: n} }
}

func retryDelay(d *jobpolicyv1.RetryDelay) func(*request) {
	return func(r *request) { r.Spec.Options = &jobpolicyv1.JobOptions{RetryDelay: d} }
}

// invalidSpecs are mistakes in the spec.
var invalidSpecs = []invalidRequest{
	{"no spec", "spec", "is required", func(r *request) { r.Spec = nil }},
	{"negative parallelism", "spec.parallelism", "must not be negative, is -1", func(r *request) { r.Spec.Parallelism = -1 }},
	{"negative completions", "spec.completions", "must not be negative, is -2", func(r *request) { r.Spec.Completions = proto.Int32(-2) }},
	{"an Indexed job without completions", "spec.completions", "is required with COMPLETION_MODE_INDEXED", func(r *request) { r.Spec.Completions = nil }},
	{"a negative backoffLimit", "spec.backoff_limit", "must not be negative", func(r *request) { r.Spec.BackoffLimit = -1 }},
	{"a negative limit per index", "spec.backoff_limit_per_index", "must not be negative", func(r *request) { r.Spec.BackoffLimitPerIndex = proto.Int32(-1) }},
	{"a negative maxFailedIndexes", "spec.max_failed_indexes", "must not be negative", func(r *request) { r.Spec.MaxFailedIndexes = proto.Int32(-1) }},
	{"a negative ttl", "spec.ttl_seconds_after_finished", "must not be negative", func(r *request) { r.Spec.TtlSecondsAfterFinished = proto.Int32(-1) }},
	{"an option beyond its limit", "spec.options.ttl_seconds_after_failed", "expected a whole number", func(r *request) {
		r.Spec.Options = &jobpolicyv1.JobOptions{TtlSecondsAfterFailed: proto.Int32(-1)}
	}},
	{"a problem of the options without end", "spec.option_problems[0]", "must have 1 to 1024 bytes, has 1025", func(r *request) {
		r.Spec.OptionProblems = []string{strings.Repeat("x", 1025)}
	}},
	{"more problems than are told", "spec.option_problems", "must have at most 10 entries, has 11", func(r *request) { r.Spec.OptionProblems = make([]string, 11) }},
	{"a negative deadline", "spec.active_deadline_seconds", "must not be negative, is -1", func(r *request) { r.Spec.ActiveDeadlineSeconds = proto.Int64(-1) }},
	{"limits per index without indexes", "spec.backoff_limit_per_index", "needs COMPLETION_MODE_INDEXED", func(r *request) { r.Spec.CompletionMode = 1 }},
	{
		"maxFailedIndexes without limits per index", "spec.max_failed_indexes", "needs spec.backoff_limit_per_index",
		func(r *request) { r.Spec.BackoffLimitPerIndex = nil },
	},
	{
		"a failure policy that replaces terminating pods", "spec.pod_replacement_policy", "must be POD_REPLACEMENT_POLICY_FAILED or absent",
		func(r *request) { r.Spec.PodReplacementPolicy = 1 },
	},
}

// invalidPolicies are mistakes in the policies of the spec.
var invalidPolicies = []invalidRequest{
	{"a success policy without indexes", "spec.success_policy", "needs COMPLETION_MODE_INDEXED", func(r *request) { r.Spec.CompletionMode = 1 }},
	{"a failure policy with restarts", "spec.pod_failure_policy", "needs RESTART_POLICY_NEVER", func(r *request) { r.Spec.RestartPolicy = 2 }},
	{"too many failure rules", "spec.pod_failure_policy.rules", "at most 20 entries, has 21", func(r *request) {
		r.Spec.PodFailurePolicy.Rules = make([]*jobpolicyv1.PodFailurePolicyRule, 21)
	}},
	{"fewer names than failure rules", "spec.options.failure_rule_names", "as many names as the pod failure policy has rules (2), or none, has 1", func(r *request) {
		r.Spec.Options = &jobpolicyv1.JobOptions{FailureRuleNames: []string{"a"}}
	}},
	{"names of rules without a policy", "spec.options.failure_rule_names", "(0), or none, has 1", func(r *request) {
		r.Spec.PodFailurePolicy, r.Spec.Options = nil, &jobpolicyv1.JobOptions{FailureRuleNames: []string{"a"}}
	}},
	{"a nil failure rule", "spec.pod_failure_policy.rules[0].action", "is required", func(r *request) { r.Spec.PodFailurePolicy.Rules[0] = nil }},
	{"a failure rule with two requirements", "spec.pod_failure_policy.rules[0].on_exit_codes", "exactly one of", func(r *request) {
		r.Spec.PodFailurePolicy.Rules[0].OnPodConditions = []*jobpolicyv1.PodConditionPattern{pattern("A")}
	}},
	{"FailIndex without limits per index", "spec.pod_failure_policy.rules[1].action", "FAIL_INDEX needs spec.backoff_limit_per_index", func(r *request) {
		r.Spec.PodFailurePolicy.Rules[1].Action = jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX
		r.Spec.BackoffLimitPerIndex, r.Spec.MaxFailedIndexes = nil, nil
	}},
	{
		"no exit codes", "spec.pod_failure_policy.rules[0].on_exit_codes.values", "between 1 and 255, is 0",
		func(r *request) { r.Spec.PodFailurePolicy.Rules[0].OnExitCodes.Values = nil },
	},
	{
		"a nil pattern", "spec.pod_failure_policy.rules[1].on_pod_conditions[0].type", "1 to 317 bytes, has 0",
		func(r *request) { r.Spec.PodFailurePolicy.Rules[1].OnPodConditions[0] = nil },
	},
	{
		"a pattern without status", "spec.pod_failure_policy.rules[1].on_pod_conditions[0].status", "is required",
		func(r *request) { r.Spec.PodFailurePolicy.Rules[1].OnPodConditions[0].Status = 0 },
	},
	{
		"a nil success rule", "spec.success_policy.rules[0].succeeded_indexes", "one of succeeded_indexes and succeeded_count",
		func(r *request) { r.Spec.SuccessPolicy.Rules[0] = nil },
	},
	{
		"a negative success count", "spec.success_policy.rules[0].succeeded_count", "must not be negative",
		func(r *request) { r.Spec.SuccessPolicy.Rules[0].SucceededCount = proto.Int32(-1) },
	},
}

// invalidStatuses are mistakes in the status.
var invalidStatuses = []invalidRequest{
	{"negative active", "status.active", "must not be negative", func(r *request) { r.Status.Active = -1 }},
	{"negative ready", "status.ready", "must not be negative", func(r *request) { r.Status.Ready = proto.Int32(-1) }},
	{"negative terminating", "status.terminating", "must not be negative", func(r *request) { r.Status.Terminating = proto.Int32(-1) }},
	{"negative succeeded", "status.succeeded", "must not be negative", func(r *request) { r.Status.Succeeded = -1 }},
	{"negative failed", "status.failed", "must not be negative", func(r *request) { r.Status.Failed = -1 }},
	{"a start time that is none", "status.start_time", "must be a time", func(r *request) { r.Status.StartTime = badTime() }},
	{"completed indexes backwards", "status.completed_indexes.ranges", "ascending order", func(r *request) { r.Status.CompletedIndexes = ranges(3, 4, 0, 1) }},
	{"failed indexes that overlap", "status.failed_indexes.ranges", "must not overlap", func(r *request) { r.Status.FailedIndexes = ranges(0, 4, 4, 5) }},
	{"a negative index", "status.completed_indexes.ranges", "0 <= first <= last <= 2147483646", func(r *request) { r.Status.CompletedIndexes = ranges(-1, 4) }},
	{
		"a range that ends before it begins", "status.completed_indexes.ranges", "0 <= first <= last <= 2147483646",
		func(r *request) { r.Status.CompletedIndexes = ranges(5, 4) },
	},
	{"an index above the limit", "status.completed_indexes.ranges", "2147483646", func(r *request) { r.Status.CompletedIndexes = ranges(0, 1<<31-1) }},
	{"too many ranges", "status.completed_indexes.ranges", "at most 200000 entries, has 200001", func(r *request) {
		r.Status.CompletedIndexes = &jobpolicyv1.IndexSet{Ranges: make([]*jobpolicyv1.IndexRange, 200_001)}
	}},
	{"a nil condition", "status.conditions[0].type", "1 to 317 bytes, has 0", func(r *request) { r.Status.Conditions[0] = nil }},
	{"a condition twice", "status.conditions[1].type", "duplicate", func(r *request) {
		r.Status.Conditions = append(r.Status.Conditions, proto.CloneOf(r.Status.Conditions[0]))
	}},
	{"a condition without status", "status.conditions[0].status", "is required", func(r *request) { r.Status.Conditions[0].Status = 0 }},
	{"a reason that is too long", "status.conditions[0].reason", "0 to 1024 bytes, has 1025", func(r *request) { r.Status.Conditions[0].Reason = long(1025) }},
	{"a message that is too long", "status.conditions[0].message", "has 32769", func(r *request) { r.Status.Conditions[0].Message = long(32769) }},
	{
		"too many conditions", "status.conditions", "at most 100 entries of types",
		func(r *request) { r.Status.Conditions = make([]*jobpolicyv1.JobCondition, 101) },
	},
	{"a type that is too long", "status.conditions[0].type", "1 to 317 bytes, has 318", func(r *request) { r.Status.Conditions[0].Type = long(318) }},
	{
		"an uncounted UID of the wrong size", "status.uncounted.failed[0]", "must have 1 to 64 bytes, has 65",
		func(r *request) { r.Status.Uncounted.Failed = [][]byte{make([]byte, 65)} },
	},
	{"a UID in both lists", "status.uncounted.failed[0]", "duplicate", func(r *request) { r.Status.Uncounted.Succeeded = [][]byte{uid("gone")} }},
}

// invalidCounts are mistakes in the counts of pods.
var invalidCounts = []invalidRequest{
	{"negative pods.active", "pods.active", "must not be negative", func(r *request) { r.Pods.Active = -1 }},
	{"negative restarts", "pods.restarts", "must not be negative", func(r *request) { r.Pods.Restarts = -1 }},
	{"more ready than active pods", "pods.ready", "between 0 and 2, is 3", func(r *request) { r.Pods.Ready = 3 }},
	{"more tracked than active pods", "pods.tracked_active", "between 0 and 2, is 3", func(r *request) { r.Pods.TrackedActive = 3 }},
	{"more active indexes than pods", "pods.active_indexes", "more indexes than pods.active (2), has 5", func(r *request) { r.Pods.ActiveIndexes = ranges(0, 4) }},
	{
		"more terminating indexes", "pods.terminating_indexes", "more indexes than pods.terminating (1), has 5",
		func(r *request) { r.Pods.TerminatingIndexes = ranges(0, 4) },
	},
	{"negative unlisted succeeded", "unlisted_pods.succeeded", "must not be negative", func(r *request) { r.UnlistedPods.Succeeded = -1 }},
	{"negative unlisted failed", "unlisted_pods.failed", "must not be negative", func(r *request) { r.UnlistedPods.Failed = -1 }},
	{
		"more unlisted indexes than pods", "unlisted_pods.succeeded_indexes", "more indexes than unlisted_pods.succeeded (1), has 5",
		func(r *request) { r.UnlistedPods.SucceededIndexes = ranges(0, 4) },
	},
	{
		"more unlisted failed indexes than pods", "unlisted_pods.failed_indexes", "more indexes than unlisted_pods.failed (1), has 5",
		func(r *request) { r.UnlistedPods.FailedIndexes = ranges(0, 4) },
	},
	{"more unlisted ending than failed", "unlisted_pods.terminating", "must be between 0 and", func(r *request) { r.UnlistedPods.Terminating = r.UnlistedPods.Failed + 1 }},
	{"negative creations", "in_flight.creates", "must not be negative", func(r *request) { r.InFlight.Creates = -1 }},
	{
		"more indexes than creations", "in_flight.create_indexes", "more indexes than in_flight.creates (1), has 5",
		func(r *request) { r.InFlight.CreateIndexes = ranges(0, 4) },
	},
}

// invalidRows are mistakes in the rows of pods.
var invalidRows = []invalidRequest{
	{
		"fewer terminating pods than rows", "unaccounted_pods", "has 1 pods that are being deleted, more than pods.terminating (0)",
		func(r *request) { r.Pods.Terminating, r.Pods.TerminatingIndexes = 0, nil },
	},
	{"a nil row", "unaccounted_pods[0]", "is required", func(r *request) { r.UnaccountedPods[0] = nil }},
	{"a row twice", "unaccounted_pods[1].uid", "duplicate", func(r *request) { r.UnaccountedPods[1].Uid = uid("d") }},
	{"a row without phase", "unaccounted_pods[1].phase", "is required", func(r *request) { r.UnaccountedPods[1].Phase = 0 }},
	{
		"a row of an active pod", "unaccounted_pods[0].deleting", "must be true for a pod in phase POD_PHASE_RUNNING",
		func(r *request) { r.UnaccountedPods[0].Deleting = false },
	},
	{
		"a row with a negative index", "unaccounted_pods[1].index", "between 0 and 2147483646, is -1",
		func(r *request) { r.UnaccountedPods[1].Index = proto.Int32(-1) },
	},
	{
		"a row with an index above the limit", "unaccounted_pods[1].index", "between 0 and 2147483646, is 2147483647",
		func(r *request) { r.UnaccountedPods[1].Index = proto.Int32(1<<31 - 1) },
	},
	{"a row without time", "unaccounted_pods[1].finished_time", "is required", func(r *request) { r.UnaccountedPods[1].FinishedTime = nil }},
	{
		"a negative failure count", "unaccounted_pods[1].index_failure_count", "must not be negative",
		func(r *request) { r.UnaccountedPods[1].IndexFailureCount = -1 },
	},
	{
		"a negative ignored count", "unaccounted_pods[1].index_ignored_failure_count", "must not be negative",
		func(r *request) { r.UnaccountedPods[1].IndexIgnoredFailureCount = -1 },
	},
	{"a pod name that is too long", "unaccounted_pods[1].failure.pod_name", "has 254", func(r *request) { r.UnaccountedPods[1].Failure.PodName = long(254) }},
	{
		"a long reason of a pod", "unaccounted_pods[1].failure.reason", "0 to 253 bytes, has 254",
		func(r *request) { r.UnaccountedPods[1].Failure.Reason = long(254) },
	},
	{
		"a long reason of a container", "unaccounted_pods[1].failure.container_exits[0].reason", "0 to 253 bytes, has 254",
		func(r *request) { r.UnaccountedPods[1].Failure.ContainerExits[0].Reason = long(254) },
	},
	{
		"a long termination message", "unaccounted_pods[1].failure.container_exits[0].termination_message", "0 to 200 bytes, has 201",
		func(r *request) { r.UnaccountedPods[1].Failure.ContainerExits[0].TerminationMessage = long(201) },
	},
	{
		"failures without the condition that tells them", "spec.options.end_condition_failures", "needs end_condition to be true",
		func(r *request) { r.Spec.Options = &jobpolicyv1.JobOptions{EndConditionFailures: proto.Int32(3)} },
	},
	{
		"an exit with code 0", "unaccounted_pods[1].failure.container_exits[0].exit_code", "must not be 0",
		func(r *request) { r.UnaccountedPods[1].Failure.ContainerExits[0].ExitCode = 0 },
	},
	{
		"a nil exit", "unaccounted_pods[1].failure.container_exits[0].exit_code", "must not be 0",
		func(r *request) { r.UnaccountedPods[1].Failure.ContainerExits[0] = nil },
	},
	{"a nil pod condition", "unaccounted_pods[1].failure.conditions[0].type", "has 0", func(r *request) { r.UnaccountedPods[1].Failure.Conditions[0] = nil }},
	{
		"too many rows", "unaccounted_pods", "at most 100000 entries, has 100001",
		func(r *request) { r.UnaccountedPods = make([]*jobpolicyv1.UnaccountedPod, 100_001) },
	},
	{"a nil terminating pod", "terminating_pods[0]", "is required", func(r *request) { r.TerminatingPods = []*jobpolicyv1.TerminatingPod{nil} }},
	{
		"a terminating pod without a time", "terminating_pods[0].due_time", "is required",
		func(r *request) { r.TerminatingPods = []*jobpolicyv1.TerminatingPod{{Uid: uid("d")}} },
	},
	{
		"a negative index of a terminating pod", "terminating_pods[0].index", "must be between 0 and",
		func(r *request) {
			r.TerminatingPods = []*jobpolicyv1.TerminatingPod{{Uid: uid("d"), DueTime: at(0), Index: proto.Int32(-1)}}
		},
	},
	{
		"a long name of a terminating pod", "terminating_pods[0].pod_name", "0 to 253 bytes, has 254",
		func(r *request) {
			r.TerminatingPods = []*jobpolicyv1.TerminatingPod{{Uid: uid("d"), DueTime: at(0), PodName: long(254)}}
		},
	},
	{
		"more terminating pods than there are", "terminating_pods", "has 2 pods, more than pods.terminating (1)",
		func(r *request) {
			r.TerminatingPods = []*jobpolicyv1.TerminatingPod{{Uid: uid("d"), DueTime: at(0)}, {Uid: uid("e"), DueTime: at(0)}}
		},
	},
	{
		"a terminating pod twice", "terminating_pods[1].uid", "duplicate",
		func(r *request) {
			r.Pods.Terminating = 2
			r.TerminatingPods = []*jobpolicyv1.TerminatingPod{{Uid: uid("d"), DueTime: at(0)}, {Uid: uid("d"), DueTime: at(0)}}
		},
	},
	{"a nil finished pod", "finished_pods.first[0]", "is required", func(r *request) {
		r.FinishedPods = &jobpolicyv1.FinishedPods{First: []*jobpolicyv1.FinishedPod{nil}}
	}},
	{"a finished pod that runs", "finished_pods.first[0].phase", "must be SUCCEEDED or FAILED", func(r *request) {
		r.FinishedPods = &jobpolicyv1.FinishedPods{First: []*jobpolicyv1.FinishedPod{{Uid: uid("d"), FinishedTime: at(0), Phase: 2}}}
	}},
	{"a finished pod without a time", "finished_pods.first[0].finished_time", "is required", func(r *request) {
		r.FinishedPods = &jobpolicyv1.FinishedPods{Succeeded: 1, First: []*jobpolicyv1.FinishedPod{{Uid: uid("d"), Phase: 3}}}
	}},
	{"a finished pod twice", "finished_pods.first[1].uid", "duplicate", func(r *request) {
		pod := &jobpolicyv1.FinishedPod{Uid: uid("d"), FinishedTime: at(0), Phase: 3}
		r.FinishedPods = &jobpolicyv1.FinishedPods{Succeeded: 2, First: []*jobpolicyv1.FinishedPod{pod, pod}}
	}},
	{"more finished pods than there are", "finished_pods.failed", "must not be less", func(r *request) {
		r.FinishedPods = &jobpolicyv1.FinishedPods{Succeeded: 1, First: []*jobpolicyv1.FinishedPod{{Uid: uid("d"), FinishedTime: at(0), Phase: 4}}}
	}},
	{"a nil active row", "active_pods.pods[0]", "is required", func(r *request) { r.ActivePods.Pods[0] = nil }},
	{"a pod in two lists", "active_pods.pods[0].uid", "duplicate", func(r *request) { r.ActivePods.Pods[0].Uid = uid("d") }},
	{
		"an active row that ended", "active_pods.pods[0].phase", "must not be terminal for an active pod, is POD_PHASE_FAILED",
		func(r *request) { r.ActivePods.Pods[0].Phase = 4 },
	},
	{"negative restarts of a pod", "active_pods.pods[0].max_restarts", "must not be negative", func(r *request) { r.ActivePods.Pods[0].MaxRestarts = -1 }},
	{
		"a last exit with code 0", "active_pods.pods[0].last_exit.exit_code", "must not be 0",
		func(r *request) { r.ActivePods.Pods[0].LastExit = &jobpolicyv1.ContainerExit{} },
	},
	{
		"a last exit at no time", "active_pods.pods[0].last_exit_time", "between the years 1 and 9999",
		func(r *request) { r.ActivePods.Pods[0].LastExitTime = badTime() },
	},
	{
		"a long name of an active pod", "active_pods.pods[0].pod_name", "0 to 253 bytes, has 254",
		func(r *request) { r.ActivePods.Pods[0].PodName = long(254) },
	},
	{
		"more unstarted pods than active ones", "unstarted_pods", "more than pods.active (",
		func(r *request) {
			for range r.Pods.Active + 1 {
				r.UnstartedPods = append(r.UnstartedPods, unstarted(len(r.UnstartedPods)))
			}
		},
	},
	{"an unstarted pod without a problem", "unstarted_pods[0].start.problem", "is required", func(r *request) {
		r.UnstartedPods = []*jobpolicyv1.ActivePod{unstarted(0)}
		r.UnstartedPods[0].Start.Problem = 0
	}},
	{"an unstarted pod since no time", "unstarted_pods[0].start.since", "is required", func(r *request) {
		r.UnstartedPods = []*jobpolicyv1.ActivePod{unstarted(0)}
		r.UnstartedPods[0].Start.Since = nil
	}},
	{"a long reason of an unstarted pod", "unstarted_pods[0].start.reason", "0 to 253 bytes, has 254", func(r *request) {
		r.UnstartedPods = []*jobpolicyv1.ActivePod{unstarted(0)}
		r.UnstartedPods[0].Start.Reason = long(254)
	}},
	{"an unstarted pod that is being deleted", "unstarted_pods[0].uid", "has a row in unaccounted_pods, too", func(r *request) {
		r.UnstartedPods = []*jobpolicyv1.ActivePod{unstarted(0)}
		r.UnstartedPods[0].Uid = r.UnaccountedPods[0].Uid
	}},
	{"an index that cannot fail", "spec.options.never_started", "FAIL_INDEX needs spec.backoff_limit_per_index", func(r *request) {
		r.Spec.BackoffLimitPerIndex, r.Spec.MaxFailedIndexes, r.Spec.PodFailurePolicy = nil, nil, nil
		r.Spec.Options = &jobpolicyv1.JobOptions{NeverStarted: []*jobpolicyv1.NeverStarted{{Problem: 1, AfterSeconds: proto.Int32(1), Action: 2}}}
	}},
	{"a problem in two options", "spec.options.never_started", "has two items of the same problem", func(r *request) {
		r.Spec.Options = &jobpolicyv1.JobOptions{NeverStarted: []*jobpolicyv1.NeverStarted{{Problem: 1, AfterSeconds: proto.Int32(1)}, {Problem: 1, AfterSeconds: proto.Int32(2)}}}
	}},
	{
		"negative restarts of sidecars", "active_pods.pods[0].max_sidecar_restarts", "must not be negative",
		func(r *request) { r.ActivePods.Pods[0].MaxSidecarRestarts = -1 },
	},
	{"a start of a pod that is no time", "active_pods.pods[0].start_time", "must be a time", func(r *request) { r.ActivePods.Pods[0].StartTime = badTime() }},
	{"less than no time for a pod", "active_pods.pods[0].active_deadline_seconds", "must not be negative", func(r *request) { r.ActivePods.Pods[0].ActiveDeadlineSeconds = proto.Int64(-1) }},
	{"a negative grace period", "active_pods.pods[0].grace_period_seconds", "must not be negative", func(r *request) { r.ActivePods.Pods[0].GracePeriodSeconds = -1 }},
	{"a ready time that is none", "active_pods.pods[0].ready_since", "must be a time", func(r *request) { r.ActivePods.Pods[0].ReadySince = badTime() }},
	{"a creation time that is none", "active_pods.pods[0].created_time", "must be a time", func(r *request) { r.ActivePods.Pods[0].CreatedTime = badTime() }},
	{"fewer active rows than pods", "active_pods.pods", "must have pods.active (2) rows", func(r *request) { r.ActivePods.Pods = r.ActivePods.Pods[:1] }},
	{
		"truncated rows that are whole", "active_pods.pods", "must have pods.active (1) rows",
		func(r *request) { r.Pods.Active, r.Pods.TrackedActive, r.ActivePods.Truncated = 1, 1, true },
	},
	{
		"a confirmed pod that has a row", "confirmed_releases[0]", "contradicts a row of the same UID",
		func(r *request) { r.ConfirmedReleases = [][]byte{uid("f")} },
	},
	{"a confirmed UID of wrong size", "confirmed_releases[0]", "must have 1 to 64 bytes, has 0", func(r *request) { r.ConfirmedReleases = [][]byte{{}} }},
}

// invalidSettings are mistakes in retry facts, deferrals and settings.
var invalidSettings = []invalidRequest{
	{"a success time that is none", "retry.last_success_time", "must be a time", func(r *request) { r.Retry.LastSuccessTime = badTime() }},
	{"a negative index of a retry fact", "retry.recent_failures[0].index", "between 0 and 2147483646, is -1", func(r *request) {
		r.Retry.RecentFailures[0].Index = proto.Int32(-1)
	}},
	{"a nil retry fact", "retry.recent_failures[1].finished_time", "is required", func(r *request) { r.Retry.RecentFailures[1] = nil }},
	{
		"too many retry facts", "retry.recent_failures", "at most 64 entries, has 65",
		func(r *request) { r.Retry.RecentFailures = make([]*jobpolicyv1.PodFailureFact, 65) },
	},
	{"a failed try that is absent", "retry.failed_tries[0]", "is required", func(r *request) {
		r.Retry.FailedTries = []*jobpolicyv1.FailedTry{nil}
	}},
	{"a failed try that was raised too often", "retry.failed_tries[0].resource_step", "between 0 and 64, is 65", func(r *request) {
		r.Retry.FailedTries = []*jobpolicyv1.FailedTry{{ResourceStep: 65}}
	}},
	{"a failed try without a failure", "retry.failed_tries[0].container_exits[0].exit_code", "must not be 0", func(r *request) {
		r.Retry.FailedTries = []*jobpolicyv1.FailedTry{{ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "main"}}}}
	}},
	{"a failed try of an index below 0", "retry.failed_tries[0].index", "between 0 and 2147483646, is -1", func(r *request) {
		r.Retry.FailedTries = []*jobpolicyv1.FailedTry{{Index: proto.Int32(-1)}}
	}},
	{
		"too many failed tries", "retry.failed_tries", "at most 100000 entries, has 100001",
		func(r *request) { r.Retry.FailedTries = make([]*jobpolicyv1.FailedTry, 100001) },
	},
	{"a pod that was raised too often", "retry.recent_failures[0].failure.resource_step", "between 0 and 64, is 65", func(r *request) {
		r.Retry.RecentFailures[0].Failure = &jobpolicyv1.PodFailure{ResourceStep: 65}
	}},
	{"a pause of records that is no time", "deferrals[1].until", "must be a time", func(r *request) { deferUntil(r, recordPods, badTime()) }},
	{"a pause that is no time", "deferrals[1].until", "must be a time", func(r *request) { deferUntil(r, writeRoutineStatus, badTime()) }},
	{"a hold of deletions that is no time", "deferrals[1].until", "must be a time", func(r *request) { deferUntil(r, deletePods, badTime()) }},
	{"a step put off twice", "deferrals[1].step", "is also that of an earlier entry", func(r *request) {
		r.Deferrals = []*jobpolicyv1.Deferral{{Step: createPods, Until: at(0)}, {Step: createPods, Until: at(0)}}
	}},
	{
		"more steps put off than there may be", "deferrals", "must have at most 100 entries, has 101",
		func(r *request) { r.Deferrals = make([]*jobpolicyv1.Deferral, 101) },
	},
	{"a step without a name", "deferrals[0].step", "is required", func(r *request) { r.Deferrals = []*jobpolicyv1.Deferral{{Until: at(0)}} }},
	{"a step put off for no time", "deferrals[0].until", "is required", func(r *request) { r.Deferrals = []*jobpolicyv1.Deferral{{Step: createPods}} }},
	{"a hold that is no time", "deferrals[0].until", "must be a time", func(r *request) { deferUntil(r, createPods, badTime()) }},
	{
		"no back-off at all", "settings.pod_failure_backoff", "between 0.001s and 86400s, is 0s",
		func(r *request) { r.Settings.PodFailureBackoff = durationpb.New(0) },
	},
	{
		"a back-off beyond a day", "settings.max_pod_failure_backoff", "is 90000s",
		func(r *request) { r.Settings.MaxPodFailureBackoff = durationpb.New(25 * time.Hour) },
	},
	{
		"a limit below the first delay", "settings.max_pod_failure_backoff", "between 1s and",
		func(r *request) { r.Settings.MaxPodFailureBackoff = durationpb.New(time.Millisecond) },
	},
	{
		"a duration that is none", "settings.pod_failure_backoff", "not a valid duration",
		func(r *request) { r.Settings.PodFailureBackoff = &durationpb.Duration{Nanos: -1, Seconds: 1} },
	},
	{"a negative ledger", "settings.max_uncounted_pods", "between 0 and 100000, is -1", func(r *request) { r.Settings.MaxUncountedPods = -1 }},
	{"a ledger that is too large", "settings.max_uncounted_pods", "is 100001", func(r *request) { r.Settings.MaxUncountedPods = 100_001 }},
	{"too many changes a decision", "settings.max_pod_changes", "is 100001", func(r *request) { r.Settings.MaxPodChanges = 100_001 }},
}

// unstarted is the n-th pod that does not start.
func unstarted(n int) *jobpolicyv1.ActivePod {
	return &jobpolicyv1.ActivePod{
		Uid: numberedUID(n), Phase: jobpolicyv1.PodPhase_POD_PHASE_PENDING,
		Start: &jobpolicyv1.PodStart{Problem: jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE, Since: at(0)},
	}
}
