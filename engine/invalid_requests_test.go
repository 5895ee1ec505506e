package engine_test

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// An invalidRequest is a change that makes validRequest invalid.
type invalidRequest struct {
	change func(*request)
	field  string // the field that is named
	says   string // part of what is said about it
}

func long(n int) string { return strings.Repeat("x", n) }

func ranges(bounds ...int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for i := 0; i < len(bounds); i += 2 {
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: bounds[i], Last: bounds[i+1]})
	}
	return set
}

// invalidJobs are mistakes in what a request says of the Job itself.
var invalidJobs = map[string]invalidRequest{
	"a request id that is too long": {
		change: func(r *request) { r.RequestId = long(129) },
		field:  "request_id", says: "at most 128 bytes, has 129",
	},
	"no time": {change: func(r *request) { r.Now = nil }, field: "now", says: "is required"},
	"a time that is none": {
		change: func(r *request) { r.Now = badTime() },
		field:  "now", says: "between the years 1 and 9999",
	},
	"no job": {change: func(r *request) { r.Job = nil }, field: "job", says: "is required"},
	"a job without UID": {
		change: func(r *request) { r.Job.Uid = nil },
		field:  "job.uid", says: "must have 1 to 64 bytes, has 0",
	},
	"a job UID that is too long": {
		change: func(r *request) { r.Job.Uid = make([]byte, 65) },
		field:  "job.uid", says: "must have 1 to 64 bytes, has 65",
	},
	"a long namespace": {
		change: func(r *request) { r.Job.Namespace = long(254) },
		field:  "job.namespace", says: "0 to 253 bytes, has 254",
	},
	"a name that is too long": {
		change: func(r *request) { r.Job.Name = long(254) },
		field:  "job.name", says: "1 to 253 bytes, has 254",
	},
	"a name of nothing": {change: func(r *request) { r.Job.Name = "" }, field: "job.name", says: "1 to 253 bytes, has 0"},
	"a negative generation": {
		change: func(r *request) { r.Job.Generation = -1 },
		field:  "job.generation", says: "must not be negative, is -1",
	},
}

// invalidSpecs are mistakes in the spec.
var invalidSpecs = map[string]invalidRequest{
	"no spec": {change: func(r *request) { r.Spec = nil }, field: "spec", says: "is required"},
	"negative parallelism": {
		change: func(r *request) { r.Spec.Parallelism = -1 },
		field:  "spec.parallelism", says: "must not be negative, is -1",
	},
	"negative completions": {
		change: func(r *request) { r.Spec.Completions = proto.Int32(-2) },
		field:  "spec.completions", says: "must not be negative, is -2",
	},
	"an Indexed job without completions": {
		change: func(r *request) { r.Spec.Completions = nil },
		field:  "spec.completions", says: "is required with COMPLETION_MODE_INDEXED",
	},
	"a negative backoffLimit": {
		change: func(r *request) { r.Spec.BackoffLimit = -1 },
		field:  "spec.backoff_limit", says: "must not be negative",
	},
	"a negative limit per index": {
		change: func(r *request) { r.Spec.BackoffLimitPerIndex = proto.Int32(-1) },
		field:  "spec.backoff_limit_per_index", says: "must not be negative",
	},
	"a negative maxFailedIndexes": {
		change: func(r *request) { r.Spec.MaxFailedIndexes = proto.Int32(-1) },
		field:  "spec.max_failed_indexes", says: "must not be negative",
	},
	"a negative ttl": {
		change: func(r *request) { r.Spec.TtlSecondsAfterFinished = proto.Int32(-1) },
		field:  "spec.ttl_seconds_after_finished", says: "must not be negative",
	},
	"a negative deadline": {
		change: func(r *request) { r.Spec.ActiveDeadlineSeconds = proto.Int64(-1) },
		field:  "spec.active_deadline_seconds", says: "must not be negative, is -1",
	},
	"limits per index without indexes": {
		change: func(r *request) { r.Spec.CompletionMode = 1 },
		field:  "spec.backoff_limit_per_index", says: "needs COMPLETION_MODE_INDEXED",
	},
	"maxFailedIndexes without limits per index": {
		change: func(r *request) { r.Spec.BackoffLimitPerIndex = nil },
		field:  "spec.max_failed_indexes", says: "needs spec.backoff_limit_per_index",
	},
	"a failure policy that replaces terminating pods": {
		change: func(r *request) { r.Spec.PodReplacementPolicy = 1 },
		field:  "spec.pod_replacement_policy", says: "must be POD_REPLACEMENT_POLICY_FAILED or absent",
	},
}

// invalidPolicies are mistakes in the policies of the spec.
var invalidPolicies = map[string]invalidRequest{
	"a success policy without indexes": {
		change: func(r *request) { r.Spec.CompletionMode = 1 },
		field:  "spec.success_policy", says: "needs COMPLETION_MODE_INDEXED",
	},
	"a failure policy with restarts": {
		change: func(r *request) { r.Spec.RestartPolicy = 2 },
		field:  "spec.pod_failure_policy", says: "needs RESTART_POLICY_NEVER",
	},
	"too many failure rules": {
		change: func(r *request) {
			r.Spec.PodFailurePolicy.Rules = make([]*jobpolicyv1.PodFailurePolicyRule, 21)
		},
		field: "spec.pod_failure_policy.rules", says: "at most 20 entries, has 21",
	},
	"a nil failure rule": {
		change: func(r *request) { r.Spec.PodFailurePolicy.Rules[0] = nil },
		field:  "spec.pod_failure_policy.rules[0].action", says: "is required",
	},
	"a failure rule with two requirements": {
		change: func(r *request) {
			r.Spec.PodFailurePolicy.Rules[0].OnPodConditions = []*jobpolicyv1.PodConditionPattern{pattern("A")}
		},
		field: "spec.pod_failure_policy.rules[0].on_exit_codes", says: "exactly one of",
	},
	"FailIndex without limits per index": {
		change: func(r *request) {
			r.Spec.PodFailurePolicy.Rules[1].Action = jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX
			r.Spec.BackoffLimitPerIndex, r.Spec.MaxFailedIndexes = nil, nil
		},
		field: "spec.pod_failure_policy.rules[1].action", says: "FAIL_INDEX needs spec.backoff_limit_per_index",
	},
	"no exit codes": {
		change: func(r *request) { r.Spec.PodFailurePolicy.Rules[0].OnExitCodes.Values = nil },
		field:  "spec.pod_failure_policy.rules[0].on_exit_codes.values", says: "between 1 and 255, is 0",
	},
	"a nil pattern": {
		change: func(r *request) { r.Spec.PodFailurePolicy.Rules[1].OnPodConditions[0] = nil },
		field:  "spec.pod_failure_policy.rules[1].on_pod_conditions[0].type", says: "1 to 317 bytes, has 0",
	},
	"a pattern without status": {
		change: func(r *request) { r.Spec.PodFailurePolicy.Rules[1].OnPodConditions[0].Status = 0 },
		field:  "spec.pod_failure_policy.rules[1].on_pod_conditions[0].status", says: "is required",
	},
	"a nil success rule": {
		change: func(r *request) { r.Spec.SuccessPolicy.Rules[0] = nil },
		field:  "spec.success_policy.rules[0].succeeded_indexes", says: "one of succeeded_indexes and succeeded_count",
	},
	"a negative success count": {
		change: func(r *request) { r.Spec.SuccessPolicy.Rules[0].SucceededCount = proto.Int32(-1) },
		field:  "spec.success_policy.rules[0].succeeded_count", says: "must not be negative",
	},
}

// invalidStatuses are mistakes in the status.
var invalidStatuses = map[string]invalidRequest{
	"negative active": {
		change: func(r *request) { r.Status.Active = -1 },
		field:  "status.active", says: "must not be negative",
	},
	"negative ready": {
		change: func(r *request) { r.Status.Ready = proto.Int32(-1) },
		field:  "status.ready", says: "must not be negative",
	},
	"negative terminating": {
		change: func(r *request) { r.Status.Terminating = proto.Int32(-1) },
		field:  "status.terminating", says: "must not be negative",
	},
	"negative succeeded": {
		change: func(r *request) { r.Status.Succeeded = -1 },
		field:  "status.succeeded", says: "must not be negative",
	},
	"negative failed": {
		change: func(r *request) { r.Status.Failed = -1 },
		field:  "status.failed", says: "must not be negative",
	},
	"a start time that is none": {
		change: func(r *request) { r.Status.StartTime = badTime() },
		field:  "status.start_time", says: "must be a time",
	},
	"completed indexes backwards": {
		change: func(r *request) { r.Status.CompletedIndexes = ranges(3, 4, 0, 1) },
		field:  "status.completed_indexes.ranges", says: "ascending order",
	},
	"failed indexes that overlap": {
		change: func(r *request) { r.Status.FailedIndexes = ranges(0, 4, 4, 5) },
		field:  "status.failed_indexes.ranges", says: "must not overlap",
	},
	"a negative index": {
		change: func(r *request) { r.Status.CompletedIndexes = ranges(-1, 4) },
		field:  "status.completed_indexes.ranges", says: "0 <= first <= last <= 2147483646",
	},
	"a range that ends before it begins": {
		change: func(r *request) { r.Status.CompletedIndexes = ranges(5, 4) },
		field:  "status.completed_indexes.ranges", says: "0 <= first <= last <= 2147483646",
	},
	"an index above the limit": {
		change: func(r *request) { r.Status.CompletedIndexes = ranges(0, 1<<31-1) },
		field:  "status.completed_indexes.ranges", says: "2147483646",
	},
	"too many ranges": {
		change: func(r *request) {
			r.Status.CompletedIndexes = &jobpolicyv1.IndexSet{Ranges: make([]*jobpolicyv1.IndexRange, 200_001)}
		},
		field: "status.completed_indexes.ranges", says: "at most 200000 entries, has 200001",
	},
	"a nil condition": {
		change: func(r *request) { r.Status.Conditions[0] = nil },
		field:  "status.conditions[0].type", says: "1 to 317 bytes, has 0",
	},
	"a condition twice": {
		change: func(r *request) {
			r.Status.Conditions = append(r.Status.Conditions, proto.CloneOf(r.Status.Conditions[0]))
		},
		field: "status.conditions[1].type", says: "duplicate",
	},
	"a condition without status": {
		change: func(r *request) { r.Status.Conditions[0].Status = 0 },
		field:  "status.conditions[0].status", says: "is required",
	},
	"a reason that is too long": {
		change: func(r *request) { r.Status.Conditions[0].Reason = long(1025) },
		field:  "status.conditions[0].reason", says: "0 to 1024 bytes, has 1025",
	},
	"a message that is too long": {
		change: func(r *request) { r.Status.Conditions[0].Message = long(32769) },
		field:  "status.conditions[0].message", says: "has 32769",
	},
	"too many conditions": {
		change: func(r *request) { r.Status.Conditions = make([]*jobpolicyv1.JobCondition, 101) },
		field:  "status.conditions", says: "at most 100 entries of types",
	},
	"a type that is too long": {
		change: func(r *request) { r.Status.Conditions[0].Type = long(318) },
		field:  "status.conditions[0].type", says: "1 to 317 bytes, has 318",
	},
	"an uncounted UID of the wrong size": {
		change: func(r *request) { r.Status.Uncounted.Failed = [][]byte{make([]byte, 65)} },
		field:  "status.uncounted.failed[0]", says: "must have 1 to 64 bytes, has 65",
	},
	"a UID in both lists": {
		change: func(r *request) { r.Status.Uncounted.Succeeded = [][]byte{uid("gone")} },
		field:  "status.uncounted.failed[0]", says: "duplicate",
	},
}

// invalidCounts are mistakes in the counts of pods.
var invalidCounts = map[string]invalidRequest{
	"negative pods.active": {
		change: func(r *request) { r.Pods.Active = -1 },
		field:  "pods.active", says: "must not be negative",
	},
	"negative restarts": {
		change: func(r *request) { r.Pods.Restarts = -1 },
		field:  "pods.restarts", says: "must not be negative",
	},
	"more ready than active pods": {
		change: func(r *request) { r.Pods.Ready = 3 },
		field:  "pods.ready", says: "between 0 and 2, is 3",
	},
	"more tracked than active pods": {
		change: func(r *request) { r.Pods.TrackedActive = 3 },
		field:  "pods.tracked_active", says: "between 0 and 2, is 3",
	},
	"more active indexes than pods": {
		change: func(r *request) { r.Pods.ActiveIndexes = ranges(0, 4) },
		field:  "pods.active_indexes", says: "more indexes than pods.active (2), has 5",
	},
	"more terminating indexes": {
		change: func(r *request) { r.Pods.TerminatingIndexes = ranges(0, 4) },
		field:  "pods.terminating_indexes", says: "more indexes than pods.terminating (1), has 5",
	},
	"negative unlisted succeeded": {
		change: func(r *request) { r.UnlistedPods.Succeeded = -1 },
		field:  "unlisted_pods.succeeded", says: "must not be negative",
	},
	"negative unlisted failed": {
		change: func(r *request) { r.UnlistedPods.Failed = -1 },
		field:  "unlisted_pods.failed", says: "must not be negative",
	},
	"more unlisted indexes than pods": {
		change: func(r *request) { r.UnlistedPods.SucceededIndexes = ranges(0, 4) },
		field:  "unlisted_pods.succeeded_indexes", says: "more indexes than unlisted_pods.succeeded (1), has 5",
	},
	"more unlisted failed indexes than pods": {
		change: func(r *request) { r.UnlistedPods.FailedIndexes = ranges(0, 4) },
		field:  "unlisted_pods.failed_indexes", says: "more indexes than unlisted_pods.failed (1), has 5",
	},
	"more unlisted ending than failed": {
		change: func(r *request) { r.UnlistedPods.Ending = r.UnlistedPods.Failed + 1 },
		field:  "unlisted_pods.ending", says: "must be between 0 and",
	},
	"negative creations": {
		change: func(r *request) { r.InFlight.Creates = -1 },
		field:  "in_flight.creates", says: "must not be negative",
	},
	"more indexes than creations": {
		change: func(r *request) { r.InFlight.CreateIndexes = ranges(0, 4) },
		field:  "in_flight.create_indexes", says: "more indexes than in_flight.creates (1), has 5",
	},
}

// invalidRows are mistakes in the rows of pods.
var invalidRows = map[string]invalidRequest{
	"fewer terminating pods than rows": {
		change: func(r *request) { r.Pods.Terminating, r.Pods.TerminatingIndexes = 0, nil },
		field:  "unaccounted_pods", says: "has 1 pods that are being deleted, more than pods.terminating (0)",
	},
	"a nil row": {
		change: func(r *request) { r.UnaccountedPods[0] = nil },
		field:  "unaccounted_pods[0]", says: "is required",
	},
	"a row twice": {
		change: func(r *request) { r.UnaccountedPods[1].Uid = uid("d") },
		field:  "unaccounted_pods[1].uid", says: "duplicate",
	},
	"a row without phase": {
		change: func(r *request) { r.UnaccountedPods[1].Phase = 0 },
		field:  "unaccounted_pods[1].phase", says: "is required",
	},
	"a row of an active pod": {
		change: func(r *request) { r.UnaccountedPods[0].Deleting = false },
		field:  "unaccounted_pods[0].deleting", says: "must be true for a pod in phase POD_PHASE_RUNNING",
	},
	"a row with a negative index": {
		change: func(r *request) { r.UnaccountedPods[1].Index = proto.Int32(-1) },
		field:  "unaccounted_pods[1].index", says: "between 0 and 2147483646, is -1",
	},
	"a row with an index above the limit": {
		change: func(r *request) { r.UnaccountedPods[1].Index = proto.Int32(1<<31 - 1) },
		field:  "unaccounted_pods[1].index", says: "between 0 and 2147483646, is 2147483647",
	},
	"a row without time": {
		change: func(r *request) { r.UnaccountedPods[1].FinishedTime = nil },
		field:  "unaccounted_pods[1].finished_time", says: "is required",
	},
	"a negative failure count": {
		change: func(r *request) { r.UnaccountedPods[1].IndexFailureCount = -1 },
		field:  "unaccounted_pods[1].index_failure_count", says: "must not be negative",
	},
	"a negative ignored count": {
		change: func(r *request) { r.UnaccountedPods[1].IndexIgnoredFailureCount = -1 },
		field:  "unaccounted_pods[1].index_ignored_failure_count", says: "must not be negative",
	},
	"a pod name that is too long": {
		change: func(r *request) { r.UnaccountedPods[1].Failure.PodName = long(254) },
		field:  "unaccounted_pods[1].failure.pod_name", says: "has 254",
	},
	"an exit with code 0": {
		change: func(r *request) { r.UnaccountedPods[1].Failure.ContainerExits[0].ExitCode = 0 },
		field:  "unaccounted_pods[1].failure.container_exits[0].exit_code", says: "must not be 0",
	},
	"a nil exit": {
		change: func(r *request) { r.UnaccountedPods[1].Failure.ContainerExits[0] = nil },
		field:  "unaccounted_pods[1].failure.container_exits[0].exit_code", says: "must not be 0",
	},
	"a nil pod condition": {
		change: func(r *request) { r.UnaccountedPods[1].Failure.Conditions[0] = nil },
		field:  "unaccounted_pods[1].failure.conditions[0].type", says: "has 0",
	},
	"too many rows": {
		change: func(r *request) { r.UnaccountedPods = make([]*jobpolicyv1.UnaccountedPod, 100_001) },
		field:  "unaccounted_pods", says: "at most 100000 entries, has 100001",
	},
	"a nil active row": {
		change: func(r *request) { r.ActivePods.Pods[0] = nil },
		field:  "active_pods.pods[0]", says: "is required",
	},
	"a pod in two lists": {
		change: func(r *request) { r.ActivePods.Pods[0].Uid = uid("d") },
		field:  "active_pods.pods[0].uid", says: "duplicate",
	},
	"an active row that ended": {
		change: func(r *request) { r.ActivePods.Pods[0].Phase = 4 },
		field:  "active_pods.pods[0].phase", says: "must not be terminal for an active pod, is POD_PHASE_FAILED",
	},
	"negative restarts of a pod": {
		change: func(r *request) { r.ActivePods.Pods[0].MaxRestarts = -1 },
		field:  "active_pods.pods[0].max_restarts", says: "must not be negative",
	},
	"negative restarts of sidecars": {
		change: func(r *request) { r.ActivePods.Pods[0].MaxSidecarRestarts = -1 },
		field:  "active_pods.pods[0].max_sidecar_restarts", says: "must not be negative",
	},
	"a ready time that is none": {
		change: func(r *request) { r.ActivePods.Pods[0].ReadySince = badTime() },
		field:  "active_pods.pods[0].ready_since", says: "must be a time",
	},
	"a creation time that is none": {
		change: func(r *request) { r.ActivePods.Pods[0].CreatedTime = badTime() },
		field:  "active_pods.pods[0].created_time", says: "must be a time",
	},
	"fewer active rows than pods": {
		change: func(r *request) { r.ActivePods.Pods = r.ActivePods.Pods[:1] },
		field:  "active_pods.pods", says: "must have pods.active (2) rows",
	},
	"truncated rows that are whole": {
		change: func(r *request) { r.Pods.Active, r.Pods.TrackedActive, r.ActivePods.Truncated = 1, 1, true },
		field:  "active_pods.pods", says: "must have pods.active (1) rows",
	},
	"a confirmed pod that has a row": {
		change: func(r *request) { r.ConfirmedReleases = [][]byte{uid("f")} },
		field:  "confirmed_releases[0]", says: "contradicts a row of the same UID",
	},
	"a confirmed UID of wrong size": {
		change: func(r *request) { r.ConfirmedReleases = [][]byte{{}} },
		field:  "confirmed_releases[0]", says: "must have 1 to 64 bytes, has 0",
	},
}

// invalidSettings are mistakes in versions, retry facts, deferrals and settings.
var invalidSettings = map[string]invalidRequest{
	"a long name for pods": {
		change: func(r *request) { r.Settings.PodNoun = long(33) },
		field:  "settings.pod_noun", says: "0 to 32 bytes, has 33",
	},
	"a version that is no number": {
		change: func(r *request) { r.Freshness.JobWritten = "abc" },
		field:  "freshness.job_written", says: "decimal number below 2^64",
	},
	"an observed version that is no number": {
		change: func(r *request) { r.Freshness.JobObserved = "seven" },
		field:  "freshness.job_observed", says: "decimal number below 2^64",
	},
	"a version beyond 64 bits": {
		change: func(r *request) { r.Freshness.PodsObserved = "18446744073709551616" },
		field:  "freshness.pods_observed", says: "decimal number below 2^64",
	},
	"a success time that is none": {
		change: func(r *request) { r.Retry.LastSuccessTime = badTime() },
		field:  "retry.last_success_time", says: "must be a time",
	},
	"a nil retry fact": {
		change: func(r *request) { r.Retry.RecentFailures[1] = nil },
		field:  "retry.recent_failures[1].finished_time", says: "is required",
	},
	"too many retry facts": {
		change: func(r *request) { r.Retry.RecentFailures = make([]*jobpolicyv1.PodFailureFact, 65) },
		field:  "retry.recent_failures", says: "at most 64 entries, has 65",
	},
	"a pause of records that is no time": {
		change: func(r *request) { deferUntil(r, recordPods, badTime()) },
		field:  "deferrals[1].until", says: "must be a time",
	},
	"a pause that is no time": {
		change: func(r *request) { deferUntil(r, writeRoutineStatus, badTime()) },
		field:  "deferrals[1].until", says: "must be a time",
	},
	"a hold of deletions that is no time": {
		change: func(r *request) { deferUntil(r, deletePods, badTime()) },
		field:  "deferrals[1].until", says: "must be a time",
	},
	"a step put off twice": {
		change: func(r *request) {
			r.Deferrals = []*jobpolicyv1.Deferral{{Step: createPods, Until: at(0)}, {Step: createPods, Until: at(0)}}
		},
		field: "deferrals[1].step", says: "is also that of an earlier entry",
	},
	"more steps put off than there may be": {
		change: func(r *request) { r.Deferrals = make([]*jobpolicyv1.Deferral, 101) },
		field:  "deferrals", says: "must have at most 100 entries, has 101",
	},
	"a step without a name": {
		change: func(r *request) { r.Deferrals = []*jobpolicyv1.Deferral{{Until: at(0)}} },
		field:  "deferrals[0].step", says: "is required",
	},
	"a step put off for no time": {
		change: func(r *request) { r.Deferrals = []*jobpolicyv1.Deferral{{Step: createPods}} },
		field:  "deferrals[0].until", says: "is required",
	},
	"a hold that is no time": {
		change: func(r *request) { deferUntil(r, createPods, badTime()) },
		field:  "deferrals[0].until", says: "must be a time",
	},
	"no back-off at all": {
		change: func(r *request) { r.Settings.PodFailureBackoff = durationpb.New(0) },
		field:  "settings.pod_failure_backoff", says: "between 0.001s and 86400s, is 0s",
	},
	"a back-off beyond a day": {
		change: func(r *request) { r.Settings.MaxPodFailureBackoff = durationpb.New(25 * time.Hour) },
		field:  "settings.max_pod_failure_backoff", says: "is 90000s",
	},
	"a limit below the first delay": {
		change: func(r *request) { r.Settings.MaxPodFailureBackoff = durationpb.New(time.Millisecond) },
		field:  "settings.max_pod_failure_backoff", says: "between 1s and",
	},
	"a duration that is none": {
		change: func(r *request) { r.Settings.PodFailureBackoff = &durationpb.Duration{Nanos: -1, Seconds: 1} },
		field:  "settings.pod_failure_backoff", says: "not a valid duration",
	},
	"a negative ledger": {
		change: func(r *request) { r.Settings.MaxUncountedPods = -1 },
		field:  "settings.max_uncounted_pods", says: "between 0 and 100000, is -1",
	},
	"a ledger that is too large": {
		change: func(r *request) { r.Settings.MaxUncountedPods = 100_001 },
		field:  "settings.max_uncounted_pods", says: "is 100001",
	},
	"too many changes a decision": {
		change: func(r *request) { r.Settings.MaxPodChanges = 100_001 },
		field:  "settings.max_pod_changes", says: "is 100001",
	},
}
