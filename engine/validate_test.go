package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

type request = jobpolicyv1.DecideJobRequest

// validRequest is a request with something in every field.
func validRequest(t testing.TB) *request {
	s := newScene()
	s.mustTell(t, `job completions=9 parallelism=3 mode=Indexed backoffLimitPerIndex=1 maxFailedIndexes=2 activeDeadlineSeconds=600 ttlSecondsAfterFinished=60
failureRule action=FailJob in=42 container=main
failureRule action=Ignore condition=DisruptionTarget
successRule indexes=0-3,7 count=4
now 100s
status start=0s active=2 ready=1 terminating=1 succeeded=2 failed=1 completed=0-1 failedIndexes=5 uncountedSucceeded= uncountedFailed=gone
condition Suspended status=False reason=JobResumed
pods active=2 ready=1 terminating=1 indexes=3-4 terminatingIndexes=2
finished d phase=Running deleting index=2
finished f phase=Failed index=6 exit=main:1 condition=DisruptionTarget=False failures=1 ignored=1
row a index=3 ready since=50s created=1s
row b index=4 phase=Pending unscheduled
confirm gone
unlisted succeeded=1 failed=1 indexes=8
inflight creates=1 indexes=7
fresh job=7/7 pods=9/8
retry success=10s failures=(20s,30s)
defercreations 90s
settings backoff=1s maxBackoff=60s maxUncounted=100 maxChanges=100`)
	s.req.RequestId = "id"
	return s.req
}

func TestAValidRequestIsAccepted(t *testing.T) {
	resp, err := engine.DecideJob(validRequest(t))
	if err != nil {
		t.Fatal(err)
	}
	if broken := brokenPromises(validRequest(t), resp); len(broken) > 0 {
		t.Error(broken)
	}
}

func TestInvalidRequests(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	ranges := func(r ...int32) *jobpolicyv1.IndexSet {
		m := &jobpolicyv1.IndexSet{}
		for i := 0; i < len(r); i += 2 {
			m.Ranges = append(m.Ranges, &jobpolicyv1.IndexRange{First: r[i], Last: r[i+1]})
		}
		return m
	}
	badTime := &timestamppb.Timestamp{Seconds: 1 << 60}
	cases := map[string]struct {
		change func(*request)
		field  string
		says   string
	}{
		"a request id that is too long":      {func(r *request) { r.RequestId = long(129) }, "request_id", "at most 128 bytes, has 129"},
		"no time":                            {func(r *request) { r.Now = nil }, "now", "is required"},
		"a time that is none":                {func(r *request) { r.Now = badTime }, "now", "between the years 1 and 9999"},
		"no job":                             {func(r *request) { r.Job = nil }, "job", "is required"},
		"a job without UID":                  {func(r *request) { r.Job.Uid = nil }, "job.uid", "must have 1 to 64 bytes, has 0"},
		"a job UID that is too long":         {func(r *request) { r.Job.Uid = make([]byte, 65) }, "job.uid", "must have 1 to 64 bytes, has 65"},
		"a long name for pods":               {func(r *request) { r.Settings.PodNoun = strings.Repeat("t", 33) }, "settings.pod_noun", "0 to 32 bytes, has 33"},
		"a long namespace":                   {func(r *request) { r.Job.Namespace = strings.Repeat("n", 254) }, "job.namespace", "0 to 253 bytes, has 254"},
		"a name that is too long":            {func(r *request) { r.Job.Name = long(254) }, "job.name", "1 to 253 bytes, has 254"},
		"a negative generation":              {func(r *request) { r.Job.Generation = -1 }, "job.generation", "must not be negative, is -1"},
		"no spec":                            {func(r *request) { r.Spec = nil }, "spec", "is required"},
		"negative parallelism":               {func(r *request) { r.Spec.Parallelism = -1 }, "spec.parallelism", "must not be negative, is -1"},
		"negative completions":               {func(r *request) { r.Spec.Completions = proto.Int32(-2) }, "spec.completions", "must not be negative, is -2"},
		"an Indexed job without completions": {func(r *request) { r.Spec.Completions = nil }, "spec.completions", "is required with COMPLETION_MODE_INDEXED"},
		"a negative backoffLimit":            {func(r *request) { r.Spec.BackoffLimit = -1 }, "spec.backoff_limit", "must not be negative"},
		"a negative limit per index":         {func(r *request) { r.Spec.BackoffLimitPerIndex = proto.Int32(-1) }, "spec.backoff_limit_per_index", "must not be negative"},
		"a negative maxFailedIndexes":        {func(r *request) { r.Spec.MaxFailedIndexes = proto.Int32(-1) }, "spec.max_failed_indexes", "must not be negative"},
		"a negative ttl":                     {func(r *request) { r.Spec.TtlSecondsAfterFinished = proto.Int32(-1) }, "spec.ttl_seconds_after_finished", "must not be negative"},
		"a negative deadline":                {func(r *request) { r.Spec.ActiveDeadlineSeconds = proto.Int64(-1) }, "spec.active_deadline_seconds", "must not be negative, is -1"},
		"limits per index without indexes": {
			func(r *request) { r.Spec.CompletionMode = 1 }, "spec.backoff_limit_per_index", "needs COMPLETION_MODE_INDEXED",
		},
		"maxFailedIndexes without limits per index": {
			func(r *request) { r.Spec.BackoffLimitPerIndex = nil }, "spec.max_failed_indexes", "needs spec.backoff_limit_per_index",
		},
		"a success policy without indexes": {func(r *request) { r.Spec.CompletionMode = 1 }, "spec.success_policy", "needs COMPLETION_MODE_INDEXED"},
		"a failure policy with restarts":   {func(r *request) { r.Spec.RestartPolicy = 2 }, "spec.pod_failure_policy", "needs RESTART_POLICY_NEVER"},
		"a failure policy that replaces terminating pods": {
			func(r *request) { r.Spec.PodReplacementPolicy = 1 }, "spec.pod_replacement_policy", "must be POD_REPLACEMENT_POLICY_FAILED or absent",
		},
		"too many failure rules": {
			func(r *request) {
				r.Spec.PodFailurePolicy.Rules = make([]*jobpolicyv1.PodFailurePolicyRule, 21)
			}, "spec.pod_failure_policy.rules", "at most 20 entries, has 21",
		},
		"a nil failure rule": {func(r *request) { r.Spec.PodFailurePolicy.Rules[0] = nil }, "spec.pod_failure_policy.rules[0].action", "is required"},
		"a failure rule with two requirements": {
			func(r *request) {
				r.Spec.PodFailurePolicy.Rules[0].OnPodConditions = []*jobpolicyv1.PodConditionPattern{pattern("A")}
			}, "spec.pod_failure_policy.rules[0].on_exit_codes", "exactly one of",
		},
		"FailIndex without limits per index": {
			func(r *request) {
				r.Spec.PodFailurePolicy.Rules[1].Action = jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX
				r.Spec.BackoffLimitPerIndex, r.Spec.MaxFailedIndexes = nil, nil
			}, "spec.pod_failure_policy.rules[1].action", "FAIL_INDEX needs spec.backoff_limit_per_index",
		},
		"no exit codes": {
			func(r *request) { r.Spec.PodFailurePolicy.Rules[0].OnExitCodes.Values = nil },
			"spec.pod_failure_policy.rules[0].on_exit_codes.values", "between 1 and 255, is 0",
		},
		"a nil pattern": {
			func(r *request) { r.Spec.PodFailurePolicy.Rules[1].OnPodConditions[0] = nil },
			"spec.pod_failure_policy.rules[1].on_pod_conditions[0].type", "1 to 317 bytes, has 0",
		},
		"a pattern without status": {
			func(r *request) { r.Spec.PodFailurePolicy.Rules[1].OnPodConditions[0].Status = 0 },
			"spec.pod_failure_policy.rules[1].on_pod_conditions[0].status", "is required",
		},
		"a nil success rule":       {func(r *request) { r.Spec.SuccessPolicy.Rules[0] = nil }, "spec.success_policy.rules[0].succeeded_indexes", "one of succeeded_indexes and succeeded_count"},
		"a negative success count": {func(r *request) { r.Spec.SuccessPolicy.Rules[0].SucceededCount = proto.Int32(-1) }, "spec.success_policy.rules[0].succeeded_count", "must not be negative"},

		"negative active":             {func(r *request) { r.Status.Active = -1 }, "status.active", "must not be negative"},
		"negative ready":              {func(r *request) { r.Status.Ready = proto.Int32(-1) }, "status.ready", "must not be negative"},
		"negative terminating":        {func(r *request) { r.Status.Terminating = proto.Int32(-1) }, "status.terminating", "must not be negative"},
		"negative succeeded":          {func(r *request) { r.Status.Succeeded = -1 }, "status.succeeded", "must not be negative"},
		"negative failed":             {func(r *request) { r.Status.Failed = -1 }, "status.failed", "must not be negative"},
		"a start time that is none":   {func(r *request) { r.Status.StartTime = badTime }, "status.start_time", "must be a time"},
		"completed indexes backwards": {func(r *request) { r.Status.CompletedIndexes = ranges(3, 4, 0, 1) }, "status.completed_indexes.ranges", "ascending order"},
		"failed indexes that overlap": {func(r *request) { r.Status.FailedIndexes = ranges(0, 4, 4, 5) }, "status.failed_indexes.ranges", "must not overlap"},
		"a negative index":            {func(r *request) { r.Status.CompletedIndexes = ranges(-1, 4) }, "status.completed_indexes.ranges", "0 <= first <= last <= 2147483646"},
		"an index above the limit":    {func(r *request) { r.Status.CompletedIndexes = ranges(0, 1<<31-1) }, "status.completed_indexes.ranges", "2147483646"},
		"too many ranges": {
			func(r *request) {
				r.Status.CompletedIndexes = &jobpolicyv1.IndexSet{Ranges: make([]*jobpolicyv1.IndexRange, 200_001)}
			}, "status.completed_indexes.ranges", "at most 200000 entries, has 200001",
		},
		"a nil condition": {func(r *request) { r.Status.Conditions[0] = nil }, "status.conditions[0].type", "1 to 317 bytes, has 0"},
		"a condition twice": {func(r *request) {
			r.Status.Conditions = append(r.Status.Conditions, proto.CloneOf(r.Status.Conditions[0]))
		}, "status.conditions[1].type", "duplicate"},
		"a condition without status": {func(r *request) { r.Status.Conditions[0].Status = 0 }, "status.conditions[0].status", "is required"},
		"a reason that is too long":  {func(r *request) { r.Status.Conditions[0].Reason = long(1025) }, "status.conditions[0].reason", "0 to 1024 bytes, has 1025"},
		"a message that is too long": {func(r *request) { r.Status.Conditions[0].Message = long(32769) }, "status.conditions[0].message", "has 32769"},
		"too many conditions":        {func(r *request) { r.Status.Conditions = make([]*jobpolicyv1.JobCondition, 101) }, "status.conditions", "at most 100 entries of types"},
		"a type that is too long":    {func(r *request) { r.Status.Conditions[0].Type = long(318) }, "status.conditions[0].type", "1 to 317 bytes, has 318"},
		"an uncounted UID of the wrong size": {
			func(r *request) { r.Status.Uncounted.Failed = [][]byte{make([]byte, 65)} }, "status.uncounted.failed[0]", "must have 1 to 64 bytes, has 65",
		},
		"a UID in both lists": {
			func(r *request) { r.Status.Uncounted.Succeeded = [][]byte{uid("gone")} }, "status.uncounted.failed[0]", "duplicate",
		},

		"negative pods.active":             {func(r *request) { r.Pods.Active = -1 }, "pods.active", "must not be negative"},
		"negative restarts":                {func(r *request) { r.Pods.Restarts = -1 }, "pods.restarts", "must not be negative"},
		"more ready than active pods":      {func(r *request) { r.Pods.Ready = 3 }, "pods.ready", "between 0 and 2, is 3"},
		"more tracked than active pods":    {func(r *request) { r.Pods.TrackedActive = 3 }, "pods.tracked_active", "between 0 and 2, is 3"},
		"more active indexes than pods":    {func(r *request) { r.Pods.ActiveIndexes = ranges(0, 4) }, "pods.active_indexes", "more indexes than pods.active (2), has 5"},
		"more terminating indexes":         {func(r *request) { r.Pods.TerminatingIndexes = ranges(0, 4) }, "pods.terminating_indexes", "more indexes than pods.terminating (1), has 5"},
		"fewer terminating pods than rows": {func(r *request) { r.Pods.Terminating, r.Pods.TerminatingIndexes = 0, nil }, "unaccounted_pods", "has 1 pods that are being deleted, more than pods.terminating (0)"},

		"a nil row":                   {func(r *request) { r.UnaccountedPods[0] = nil }, "unaccounted_pods[0]", "is required"},
		"a row twice":                 {func(r *request) { r.UnaccountedPods[1].Uid = uid("d") }, "unaccounted_pods[1].uid", "duplicate"},
		"a row without phase":         {func(r *request) { r.UnaccountedPods[1].Phase = 0 }, "unaccounted_pods[1].phase", "is required"},
		"a row of an active pod":      {func(r *request) { r.UnaccountedPods[0].Deleting = false }, "unaccounted_pods[0].deleting", "must be true for a pod in phase POD_PHASE_RUNNING"},
		"a row with a negative index": {func(r *request) { r.UnaccountedPods[1].Index = proto.Int32(-1) }, "unaccounted_pods[1].index", "between 0 and 2147483646, is -1"},
		"a row without time":          {func(r *request) { r.UnaccountedPods[1].FinishedTime = nil }, "unaccounted_pods[1].finished_time", "is required"},
		"a negative failure count":    {func(r *request) { r.UnaccountedPods[1].IndexFailureCount = -1 }, "unaccounted_pods[1].index_failure_count", "must not be negative"},
		"a negative ignored count":    {func(r *request) { r.UnaccountedPods[1].IndexIgnoredFailureCount = -1 }, "unaccounted_pods[1].index_ignored_failure_count", "must not be negative"},
		"a pod name that is too long": {func(r *request) { r.UnaccountedPods[1].Failure.PodName = long(254) }, "unaccounted_pods[1].failure.pod_name", "has 254"},
		"an exit with code 0":         {func(r *request) { r.UnaccountedPods[1].Failure.ContainerExits[0].ExitCode = 0 }, "unaccounted_pods[1].failure.container_exits[0].exit_code", "must not be 0"},
		"a nil exit":                  {func(r *request) { r.UnaccountedPods[1].Failure.ContainerExits[0] = nil }, "unaccounted_pods[1].failure.container_exits[0].exit_code", "must not be 0"},
		"a nil pod condition":         {func(r *request) { r.UnaccountedPods[1].Failure.Conditions[0] = nil }, "unaccounted_pods[1].failure.conditions[0].type", "has 0"},
		"too many rows":               {func(r *request) { r.UnaccountedPods = make([]*jobpolicyv1.UnaccountedPod, 100_001) }, "unaccounted_pods", "at most 100000 entries, has 100001"},

		"a nil active row":               {func(r *request) { r.ActivePods.Pods[0] = nil }, "active_pods.pods[0]", "is required"},
		"a pod in two lists":             {func(r *request) { r.ActivePods.Pods[0].Uid = uid("d") }, "active_pods.pods[0].uid", "duplicate"},
		"an active row that ended":       {func(r *request) { r.ActivePods.Pods[0].Phase = 4 }, "active_pods.pods[0].phase", "must not be terminal for an active pod, is POD_PHASE_FAILED"},
		"negative restarts of a pod":     {func(r *request) { r.ActivePods.Pods[0].MaxRestarts = -1 }, "active_pods.pods[0].max_restarts", "must not be negative"},
		"negative restarts of sidecars":  {func(r *request) { r.ActivePods.Pods[0].MaxSidecarRestarts = -1 }, "active_pods.pods[0].max_sidecar_restarts", "must not be negative"},
		"a ready time that is none":      {func(r *request) { r.ActivePods.Pods[0].ReadySince = badTime }, "active_pods.pods[0].ready_since", "must be a time"},
		"a creation time that is none":   {func(r *request) { r.ActivePods.Pods[0].CreatedTime = badTime }, "active_pods.pods[0].created_time", "must be a time"},
		"fewer active rows than pods":    {func(r *request) { r.ActivePods.Pods = r.ActivePods.Pods[:1] }, "active_pods.pods", "must have pods.active (2) rows"},
		"truncated rows that are whole":  {func(r *request) { r.Pods.Active, r.Pods.TrackedActive, r.ActivePods.Truncated = 1, 1, true }, "active_pods.pods", "must have pods.active (1) rows"},
		"a confirmed pod that has a row": {func(r *request) { r.ConfirmedReleases = [][]byte{uid("f")} }, "confirmed_releases[0]", "contradicts a row of the same UID"},
		"a confirmed UID of wrong size":  {func(r *request) { r.ConfirmedReleases = [][]byte{{}} }, "confirmed_releases[0]", "must have 1 to 64 bytes, has 0"},

		"negative unlisted succeeded":            {func(r *request) { r.UnlistedPods.Succeeded = -1 }, "unlisted_pods.succeeded", "must not be negative"},
		"negative unlisted failed":               {func(r *request) { r.UnlistedPods.Failed = -1 }, "unlisted_pods.failed", "must not be negative"},
		"more unlisted indexes than pods":        {func(r *request) { r.UnlistedPods.SucceededIndexes = ranges(0, 4) }, "unlisted_pods.succeeded_indexes", "more indexes than unlisted_pods.succeeded (1), has 5"},
		"more unlisted failed indexes than pods": {func(r *request) { r.UnlistedPods.FailedIndexes = ranges(0, 4) }, "unlisted_pods.failed_indexes", "more indexes than unlisted_pods.failed (1), has 5"},
		"more unlisted ending than failed":       {func(r *request) { r.UnlistedPods.Ending = r.UnlistedPods.Failed + 1 }, "unlisted_pods.ending", "must be between 0 and"},
		"negative creations":                     {func(r *request) { r.InFlight.Creates = -1 }, "in_flight.creates", "must not be negative"},
		"more indexes than creations":            {func(r *request) { r.InFlight.CreateIndexes = ranges(0, 4) }, "in_flight.create_indexes", "more indexes than in_flight.creates (1), has 5"},
		"a version that is no number":            {func(r *request) { r.Freshness.JobWritten = "abc" }, "freshness.job_written", "decimal number below 2^64"},
		"a version beyond 64 bits":               {func(r *request) { r.Freshness.PodsObserved = "18446744073709551616" }, "freshness.pods_observed", "decimal number below 2^64"},
		"a success time that is none":            {func(r *request) { r.Retry.LastSuccessTime = badTime }, "retry.last_success_time", "must be a time"},
		"a nil retry fact":                       {func(r *request) { r.Retry.RecentFailures[1] = nil }, "retry.recent_failures[1].finished_time", "is required"},
		"too many retry facts":                   {func(r *request) { r.Retry.RecentFailures = make([]*jobpolicyv1.PodFailureFact, 65) }, "retry.recent_failures", "at most 64 entries, has 65"},
		"a pause of records that is no time":     {func(r *request) { deferUntil(r, recordPods, badTime) }, "deferrals[1].until", "must be a time"},
		"a pause that is no time":                {func(r *request) { deferUntil(r, writeRoutineStatus, badTime) }, "deferrals[1].until", "must be a time"},
		"a hold of deletions that is no time":    {func(r *request) { deferUntil(r, deletePods, badTime) }, "deferrals[1].until", "must be a time"},
		"a step put off twice": {func(r *request) {
			r.Deferrals = []*jobpolicyv1.Deferral{{Step: createPods, Until: at(0)}, {Step: createPods, Until: at(0)}}
		}, "deferrals[1].step", "is also that of an earlier entry"},
		"a step without a name":         {func(r *request) { r.Deferrals = []*jobpolicyv1.Deferral{{Until: at(0)}} }, "deferrals[0].step", "is required"},
		"a step put off for no time":    {func(r *request) { r.Deferrals = []*jobpolicyv1.Deferral{{Step: createPods}} }, "deferrals[0].until", "is required"},
		"a hold that is no time":        {func(r *request) { deferUntil(r, createPods, badTime) }, "deferrals[0].until", "must be a time"},
		"no back-off at all":            {func(r *request) { r.Settings.PodFailureBackoff = durationpb.New(0) }, "settings.pod_failure_backoff", "between 0.001s and 86400s, is 0s"},
		"a back-off beyond a day":       {func(r *request) { r.Settings.MaxPodFailureBackoff = durationpb.New(25 * time.Hour) }, "settings.max_pod_failure_backoff", "is 90000s"},
		"a limit below the first delay": {func(r *request) { r.Settings.MaxPodFailureBackoff = durationpb.New(time.Millisecond) }, "settings.max_pod_failure_backoff", "between 1s and"},
		"a duration that is none":       {func(r *request) { r.Settings.PodFailureBackoff = &durationpb.Duration{Nanos: -1, Seconds: 1} }, "settings.pod_failure_backoff", "not a valid duration"},
		"a negative ledger":             {func(r *request) { r.Settings.MaxUncountedPods = -1 }, "settings.max_uncounted_pods", "between 0 and 100000, is -1"},
		"a ledger that is too large":    {func(r *request) { r.Settings.MaxUncountedPods = 100_001 }, "settings.max_uncounted_pods", "is 100001"},
		"too many changes a decision":   {func(r *request) { r.Settings.MaxPodChanges = 100_001 }, "settings.max_pod_changes", "is 100001"},
	}
	var refused caseFile
	defer func() { refused.check(t, "invalid_requests.txt") }()
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			req := validRequest(t)
			tc.change(req)
			resp, err := engine.DecideJob(req)
			refused.refuse(req, tc.field)
			var invalid *engine.InvalidRequestError
			if !errors.As(err, &invalid) || resp != nil {
				t.Fatalf("DecideJob = %v, %v; want an InvalidRequestError", resp, err)
			}
			for _, v := range invalid.Violations {
				if v.Field == tc.field && strings.Contains(v.Description, tc.says) {
					return
				}
			}
			t.Errorf("no violation of %s that says %q in:\n%s", tc.field, tc.says, renderError(err))
		})
	}
}

func TestAllViolationsAreListedAtOnce(t *testing.T) {
	_, err := engine.DecideJob(&request{})
	want := "invalid request: now: is required; job: is required; spec: is required"
	if err == nil || err.Error() != want {
		t.Errorf("DecideJob of nothing:\n got %v\nwant %s", err, want)
	}
	if _, err = engine.DecideJob(nil); err == nil || err.Error() != want {
		t.Errorf("DecideJob of nil:\n got %v\nwant %s", err, want)
	}
}

func TestViolationsAreBounded(t *testing.T) {
	req := validRequest(t)
	req.UnaccountedPods = make([]*jobpolicyv1.UnaccountedPod, 50_000)
	_, err := engine.DecideJob(req)
	var invalid *engine.InvalidRequestError
	if !errors.As(err, &invalid) || len(invalid.Violations) != 100 {
		t.Fatalf("%d violations, want 100", len(invalid.Violations))
	}
}

// A request may hold whatever the API server accepts, and above all a status that the
// engine wrote.
func TestValidRequestsAtTheLimits(t *testing.T) {
	cases := map[string]func(*request){
		"a deadline of 0":      func(r *request) { r.Spec.ActiveDeadlineSeconds = proto.Int64(0) },
		"a success count of 0": func(r *request) { r.Spec.SuccessPolicy.Rules[0].SucceededCount = proto.Int32(0) },
		"a success rule for no index": func(r *request) {
			r.Spec.SuccessPolicy.Rules[0].SucceededIndexes = &jobpolicyv1.IndexSet{}
		},
		"the longest condition type, a domain of 253 bytes and a name of 63": func(r *request) {
			r.Spec.PodFailurePolicy.Rules[1].OnPodConditions[0].Type = strings.Repeat("x", 253) + "/" + strings.Repeat("y", 63)
		},
		"100 foreign conditions and all own ones": func(r *request) {
			r.Status.Conditions = nil
			for _, conditionType := range []string{suspended, criteriaMet, failureTarget, complete, failed} {
				addCondition(r, conditionType)
			}
			for i := range 100 {
				addCondition(r, fmt.Sprintf("example.com/%d", i))
			}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			req := validRequest(t)
			change(req)
			if _, err := engine.DecideJob(req); err != nil {
				t.Error(err)
			}
		})
	}
}

func addCondition(r *request, conditionType string) {
	r.Status.Conditions = append(r.Status.Conditions, &jobpolicyv1.JobCondition{
		Type: conditionType, Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE,
	})
}
