package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/annotation"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A question is one partial question, ready to be put to the engine.
type question struct {
	// request is one that is valid, and reaches every part of the answer.
	request func() proto.Message
	ask     func(proto.Message) (proto.Message, error)
}

func asking[Req, Resp proto.Message](request func() Req, ask func(Req) (Resp, error)) question {
	return question{
		request: func() proto.Message { return request() },
		ask: func(m proto.Message) (proto.Message, error) {
			resp, err := ask(m.(Req))
			if err != nil {
				return nil, err
			}
			return resp, nil
		},
	}
}

// questions are all of them, by the name of the function.
func questions() map[string]question {
	return map[string]question{
		"MatchPodFailurePolicy": asking(validPolicyQuestion, engine.MatchPodFailurePolicy),
		"MatchSuccessPolicy":    asking(validSuccessQuestion, engine.MatchSuccessPolicy),
		"ComputePodBackoff":     asking(validBackoffQuestion, engine.ComputePodBackoff),
		"ChoosePodsToDelete":    asking(validDeletionQuestion, engine.ChoosePodsToDelete),
		"ComputeIndexes":        asking(validIndexQuestion, engine.ComputeIndexes),
		"ComputeDeadlines":      asking(validDeadlineQuestion, engine.ComputeDeadlines),
	}
}

func somePolicy() *jobpolicyv1.PodFailurePolicy {
	return &jobpolicyv1.PodFailurePolicy{Rules: []*jobpolicyv1.PodFailurePolicyRule{
		{
			Action:          jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE,
			OnPodConditions: []*jobpolicyv1.PodConditionPattern{pattern("DisruptionTarget")},
		},
		{
			Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB,
			OnExitCodes: &jobpolicyv1.ExitCodesRequirement{
				ContainerName: proto.String("main"), Operator: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN, Values: []int32{42, 7},
			},
		},
	}}
}

func exit(container string, code int32) *jobpolicyv1.PodFailure {
	return &jobpolicyv1.PodFailure{
		PodName: "pi-x", ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: container, ExitCode: code}},
	}
}

func disruption() *jobpolicyv1.PodFailure {
	return &jobpolicyv1.PodFailure{PodName: "pi-x", Conditions: []*jobpolicyv1.PodConditionPattern{pattern("DisruptionTarget")}}
}

func validPolicyQuestion() *jobpolicyv1.MatchPodFailurePolicyRequest {
	return &jobpolicyv1.MatchPodFailurePolicyRequest{
		Policy: somePolicy(), Namespace: "default",
		Failures: []*jobpolicyv1.PodFailure{exit("main", 42), exit("sidecar", 42), disruption(), {}},
	}
}

func validSuccessQuestion() *jobpolicyv1.MatchSuccessPolicyRequest {
	return &jobpolicyv1.MatchSuccessPolicyRequest{Jobs: []*jobpolicyv1.SuccessPolicyProgress{{
		Policy: &jobpolicyv1.SuccessPolicy{Rules: []*jobpolicyv1.SuccessPolicyRule{
			{SucceededIndexes: ranges(0, 1)},
			{SucceededIndexes: ranges(4, 9), SucceededCount: proto.Int32(2)},
			{SucceededCount: proto.Int32(5)},
		}},
		Completions: 6, SucceededIndexes: ranges(4, 5),
	}, {}}}
}

func validBackoffQuestion() *jobpolicyv1.ComputePodBackoffRequest {
	failed := func(at *timestamppb.Timestamp, f *jobpolicyv1.PodFailure) *jobpolicyv1.PodFailureFact {
		return &jobpolicyv1.PodFailureFact{FinishedTime: at, Failure: f}
	}
	return &jobpolicyv1.ComputePodBackoffRequest{
		Now: at(100 * time.Second), Policy: somePolicy(),
		Settings: &jobpolicyv1.Settings{PodFailureBackoff: durationpb.New(8 * time.Second), MaxPodFailureBackoff: durationpb.New(time.Minute)},
		Histories: []*jobpolicyv1.FailureHistory{
			{},
			{Retry: &jobpolicyv1.RetryFacts{RecentFailures: []*jobpolicyv1.PodFailureFact{failed(at(90*time.Second), nil), failed(at(95*time.Second), nil)}}},
			{Retry: &jobpolicyv1.RetryFacts{LastSuccessTime: at(92 * time.Second), RecentFailures: []*jobpolicyv1.PodFailureFact{failed(at(90*time.Second), nil)}}},
			{Retry: &jobpolicyv1.RetryFacts{RecentFailures: []*jobpolicyv1.PodFailureFact{failed(at(99*time.Second), disruption())}}, EarlierFailures: 3},
			{Retry: &jobpolicyv1.RetryFacts{RecentFailures: []*jobpolicyv1.PodFailureFact{failed(at(99*time.Second), exit("main", 1))}}, EarlierFailures: 3},
			{Retry: &jobpolicyv1.RetryFacts{LastSuccessTime: at(101 * time.Second), RecentFailures: []*jobpolicyv1.PodFailureFact{failed(at(99*time.Second), nil)}}},
			{Retry: &jobpolicyv1.RetryFacts{RecentFailures: []*jobpolicyv1.PodFailureFact{failed(at(10*time.Second), nil)}}},
		},
	}
}

func validDeletionQuestion() *jobpolicyv1.ChoosePodsToDeleteRequest {
	pod := func(name string, index int32, phase jobpolicyv1.PodPhase, tracked bool) *jobpolicyv1.ActivePod {
		return &jobpolicyv1.ActivePod{Uid: uid(name), Index: proto.Int32(index), Phase: phase, Scheduled: true, Tracked: tracked}
	}
	running, pending := jobpolicyv1.PodPhase_POD_PHASE_RUNNING, jobpolicyv1.PodPhase_POD_PHASE_PENDING
	return &jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: []*jobpolicyv1.ScaleDown{{}, {
		Pods: []*jobpolicyv1.ActivePod{
			pod("a", 0, running, true), pod("b", 0, pending, true), pod("c", 1, running, true), pod("d", 2, pending, false), pod("e", 3, running, true),
		},
		Excess: 3, Completions: proto.Int32(3),
	}}}
}

func validIndexQuestion() *jobpolicyv1.ComputeIndexesRequest {
	return &jobpolicyv1.ComputeIndexesRequest{Jobs: []*jobpolicyv1.JobIndexes{{
		Completions: 10, CompletedIndexes: ranges(0, 2),
		FailedIndexes:  ranges(2, 2, 4, 4),
		NewlySucceeded: ranges(3, 5), NewlyFailed: ranges(5, 6), BusyIndexes: ranges(8, 12), MaxMissing: 1,
	}}}
}

func validDeadlineQuestion() *jobpolicyv1.ComputeDeadlinesRequest {
	ended := func(conditionType string) *jobpolicyv1.JobStatus {
		return &jobpolicyv1.JobStatus{Conditions: []*jobpolicyv1.JobCondition{{
			Type: conditionType, Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE, LastTransitionTime: at(50 * time.Second),
		}}}
	}
	declared := func(conditionType string) *jobpolicyv1.JobStatus {
		status := ended(conditionType)
		status.StartTime = at(0)
		return status
	}
	deadline, options := proto.Int64(60), map[string]string{annotation.TTLAfterComplete: "40"}
	return &jobpolicyv1.ComputeDeadlinesRequest{
		Now: at(100 * time.Second),
		Jobs: []*jobpolicyv1.JobLifetime{
			{Spec: &jobpolicyv1.JobSpec{}},
			{Spec: &jobpolicyv1.JobSpec{ActiveDeadlineSeconds: deadline}, Status: &jobpolicyv1.JobStatus{StartTime: at(50 * time.Second)}},
			{Spec: &jobpolicyv1.JobSpec{ActiveDeadlineSeconds: deadline}, Status: &jobpolicyv1.JobStatus{StartTime: at(40 * time.Second)}},
			{Spec: &jobpolicyv1.JobSpec{ActiveDeadlineSeconds: deadline}},
			{Spec: &jobpolicyv1.JobSpec{ActiveDeadlineSeconds: deadline, Suspend: true}, Status: &jobpolicyv1.JobStatus{StartTime: at(0)}},
			{Spec: &jobpolicyv1.JobSpec{ActiveDeadlineSeconds: deadline}, Status: declared(criteriaMet)},
			{Spec: &jobpolicyv1.JobSpec{ActiveDeadlineSeconds: deadline}, Status: declared(failureTarget)},
			{
				Spec:   &jobpolicyv1.JobSpec{ActiveDeadlineSeconds: proto.Int64(101 * 365 * 24 * 60 * 60)},
				Status: &jobpolicyv1.JobStatus{StartTime: at(-102 * 365 * 24 * time.Hour)},
			},
			{Spec: &jobpolicyv1.JobSpec{TtlSecondsAfterFinished: proto.Int32(60), Annotations: options}, Status: ended(complete)},
			{Spec: &jobpolicyv1.JobSpec{TtlSecondsAfterFinished: proto.Int32(60), Annotations: options}, Status: ended(failed)},
			{Spec: &jobpolicyv1.JobSpec{TtlSecondsAfterFinished: proto.Int32(60), Deleting: true}, Status: ended(failed)},
		},
	}
}

func TestQuestionsAreAnswered(t *testing.T) {
	count := jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_COUNT
	delayed := func(n int32, delay time.Duration, until *timestamppb.Timestamp) *jobpolicyv1.PodBackoff {
		return &jobpolicyv1.PodBackoff{ConsecutiveFailures: n, Delay: durationpb.New(delay), CreateNotBefore: until}
	}
	cases := map[string]proto.Message{
		"MatchPodFailurePolicy": &jobpolicyv1.MatchPodFailurePolicyResponse{Matches: []*jobpolicyv1.PodFailureMatch{
			{
				Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB, RuleIndex: proto.Int32(1),
				Message: "Container main for pod default/pi-x failed with exit code 42 matching FailJob rule at index 1",
			},
			{Action: count},
			{
				Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE, RuleIndex: proto.Int32(0),
				Message: "Pod default/pi-x has condition DisruptionTarget matching Ignore rule at index 0",
			},
			{Action: count},
		}},
		"MatchSuccessPolicy": &jobpolicyv1.MatchSuccessPolicyResponse{Matches: []*jobpolicyv1.SuccessPolicyMatch{
			{RuleIndex: proto.Int32(1), Message: "Matched rules at index 1"}, {},
		}},
		"ComputePodBackoff": &jobpolicyv1.ComputePodBackoffResponse{Backoffs: []*jobpolicyv1.PodBackoff{
			{},
			delayed(2, 16*time.Second, at(111*time.Second)),
			{},
			{},
			delayed(4, time.Minute, at(159*time.Second)),
			delayed(1, 8*time.Second, at(101*time.Second)),
			delayed(1, 8*time.Second, nil),
		}},
		"ChoosePodsToDelete": &jobpolicyv1.ChoosePodsToDeleteResponse{Choices: []*jobpolicyv1.PodsToDelete{{}, {Delete: []*jobpolicyv1.DeletePod{
			{Uid: uid("b"), ReleaseFirst: true, Reason: jobpolicyv1.DeleteReason_DELETE_REASON_BAD_INDEX},
			{Uid: uid("e"), ReleaseFirst: true, Reason: jobpolicyv1.DeleteReason_DELETE_REASON_BAD_INDEX},
			{Uid: uid("d"), Reason: jobpolicyv1.DeleteReason_DELETE_REASON_TOO_MANY},
		}}}},
		"ComputeIndexes": &jobpolicyv1.ComputeIndexesResponse{Progress: []*jobpolicyv1.IndexProgress{{
			CompletedIndexes: ranges(0, 3, 5, 5),
			FailedIndexes:    ranges(4, 4, 6, 6),
			MissingIndexes:   ranges(7, 7), MissingCount: 1,
		}}},
		"ComputeDeadlines": &jobpolicyv1.ComputeDeadlinesResponse{Deadlines: []*jobpolicyv1.JobDeadlines{
			{},
			{ActiveDeadline: at(110 * time.Second)},
			{ActiveDeadline: at(100 * time.Second), ActiveDeadlinePassed: true},
			{ActiveDeadline: at(160 * time.Second)},
			{},
			{},
			{},
			{ActiveDeadlinePassed: true},
			{ExpirationTime: at(90 * time.Second), Expired: true, TtlSource: "annotation jobpolicy.dev/ttl-seconds-after-complete"},
			{ExpirationTime: at(110 * time.Second), TtlSource: "spec.ttlSecondsAfterFinished"},
			{},
		}},
	}
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			got, err := q.ask(q.request())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(cases[name], got, protocmp.Transform()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// A mistake spoils a valid question. The field that it is in must be named first.
type mistake[Req any] struct {
	spoil func(Req)
	field string
}

// refusesByField asks with each mistake.
func refusesByField[Req, Resp proto.Message](t *testing.T, ask func(Req) (Resp, error), valid func() Req, mistakes map[string]mistake[Req]) {
	t.Helper()
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			req := valid()
			m.spoil(req)
			_, err := ask(req)
			invalid, ok := errors.AsType[*engine.InvalidRequestError](err)
			if !ok {
				t.Fatalf("error = %v, want an InvalidRequestError", err)
			}
			if invalid.Violations[0].Field != m.field {
				t.Errorf("violations = %v, want the first of %s", invalid.Violations, m.field)
			}
		})
	}
}

func badTime() *timestamppb.Timestamp { return &timestamppb.Timestamp{Seconds: 1 << 60} }

func TestBadChoicesOfPodsToDeleteAreRefusedByField(t *testing.T) {
	type question = jobpolicyv1.ChoosePodsToDeleteRequest
	refusesByField(t, engine.ChoosePodsToDelete, validDeletionQuestion, map[string]mistake[*question]{
		"fewer than no pods too many": {spoil: func(r *question) { r.Jobs[1].Excess = -1 }, field: "jobs[1].excess"},
		"fewer than no completions":   {spoil: func(r *question) { r.Jobs[1].Completions = proto.Int32(-1) }, field: "jobs[1].completions"},
		"a pod twice":                 {spoil: func(r *question) { r.Jobs[1].Pods[1].Uid = r.Jobs[1].Pods[0].Uid }, field: "jobs[1].pods[1].uid"},
		"a pod that is none":          {spoil: func(r *question) { r.Jobs[1].Pods[2] = nil }, field: "jobs[1].pods[2]"},
		"a pod that ended":            {spoil: func(r *question) { r.Jobs[1].Pods[2].Phase = 4 }, field: "jobs[1].pods[2].phase"},
		"100001 pods":                 {spoil: func(r *question) { r.Jobs[1].Pods = make([]*jobpolicyv1.ActivePod, 100_001) }, field: "jobs[1].pods"},
	})
}

func TestBadQuestionsAboutIndexesAreRefusedByField(t *testing.T) {
	type question = jobpolicyv1.ComputeIndexesRequest
	refusesByField(t, engine.ComputeIndexes, validIndexQuestion, map[string]mistake[*question]{
		"fewer than no indexes":           {spoil: func(r *question) { r.Jobs[0].Completions = -1 }, field: "jobs[0].completions"},
		"fewer than no indexes to list":   {spoil: func(r *question) { r.Jobs[0].MaxMissing = -1 }, field: "jobs[0].max_missing"},
		"busy indexes in the wrong order": {spoil: func(r *question) { r.Jobs[0].BusyIndexes = ranges(3, 2) }, field: "jobs[0].busy_indexes.ranges"},
		"1001 Jobs":                       {spoil: func(r *question) { r.Jobs = make([]*jobpolicyv1.JobIndexes, 1001) }, field: "jobs"},
		"200001 ranges": {
			spoil: func(r *question) {
				r.Jobs[0].NewlyFailed = &jobpolicyv1.IndexSet{Ranges: make([]*jobpolicyv1.IndexRange, 199_998)}
			},
			field: "jobs[0].newly_failed",
		},
	})
}

func TestBadQuestionsAboutDeadlinesAreRefusedByField(t *testing.T) {
	type question = jobpolicyv1.ComputeDeadlinesRequest
	refusesByField(t, engine.ComputeDeadlines, validDeadlineQuestion, map[string]mistake[*question]{
		"deadlines at no time": {spoil: func(r *question) { r.Now = nil }, field: "now"},
		"a Job without spec":   {spoil: func(r *question) { r.Jobs[1].Spec = nil }, field: "jobs[1].spec"},
		"a deadline in the past": {
			spoil: func(r *question) { r.Jobs[1].Spec.ActiveDeadlineSeconds = proto.Int64(-1) },
			field: "jobs[1].spec.active_deadline_seconds",
		},
		"a life of less than no time": {
			spoil: func(r *question) { r.Jobs[5].Spec.TtlSecondsAfterFinished = proto.Int32(-1) },
			field: "jobs[5].spec.ttl_seconds_after_finished",
		},
		"a start at no time": {spoil: func(r *question) { r.Jobs[1].Status.StartTime = badTime() }, field: "jobs[1].status.start_time"},
		"a condition without status": {
			spoil: func(r *question) { r.Jobs[6].Status.Conditions[0].Status = 0 },
			field: "jobs[6].status.conditions[0].status",
		},
	})
}

func TestBadPodFailurePolicyQuestionsAreRefusedByField(t *testing.T) {
	type question = jobpolicyv1.MatchPodFailurePolicyRequest
	refusesByField(t, engine.MatchPodFailurePolicy, validPolicyQuestion, map[string]mistake[*question]{
		"a policy's rule without action": {spoil: func(r *question) { r.Policy.Rules[1].Action = 0 }, field: "policy.rules[1].action"},
		"a policy of 21 rules": {
			spoil: func(r *question) { r.Policy.Rules = make([]*jobpolicyv1.PodFailurePolicyRule, 21) },
			field: "policy.rules",
		},
		"a namespace of 254 bytes": {spoil: func(r *question) { r.Namespace = long(254) }, field: "namespace"},
		"an exit with 0":           {spoil: func(r *question) { r.Failures[0] = exit("main", 0) }, field: "failures[0].container_exits[0].exit_code"},
		"10001 failures":           {spoil: func(r *question) { r.Failures = make([]*jobpolicyv1.PodFailure, 10_001) }, field: "failures"},
	})
}

func TestBadSuccessPolicyQuestionsAreRefusedByField(t *testing.T) {
	type question = jobpolicyv1.MatchSuccessPolicyRequest
	refusesByField(t, engine.MatchSuccessPolicy, validSuccessQuestion, map[string]mistake[*question]{
		"negative completions": {spoil: func(r *question) { r.Jobs[0].Completions = -1 }, field: "jobs[0].completions"},
		"a success rule of nothing": {
			spoil: func(r *question) { r.Jobs[0].Policy.Rules[2].SucceededCount = nil },
			field: "jobs[0].policy.rules[2].succeeded_indexes",
		},
		"indexes in the wrong order": {spoil: func(r *question) { r.Jobs[0].SucceededIndexes = ranges(3, 2) }, field: "jobs[0].succeeded_indexes.ranges"},
	})
}

func TestBadQuestionsAboutBackoffAreRefusedByField(t *testing.T) {
	type question = jobpolicyv1.ComputePodBackoffRequest
	refusesByField(t, engine.ComputePodBackoff, validBackoffQuestion, map[string]mistake[*question]{
		"no time": {spoil: func(r *question) { r.Now = nil }, field: "now"},
		"a failure without time": {
			spoil: func(r *question) { r.Histories[1].Retry.RecentFailures[0].FinishedTime = nil },
			field: "histories[1].retry.recent_failures[0].finished_time",
		},
		"a failure that names no pod": {
			spoil: func(r *question) { r.Histories[3].Retry.RecentFailures[0].Failure.PodName = long(254) },
			field: "histories[3].retry.recent_failures[0].failure.pod_name",
		},
		"fewer than no failures": {spoil: func(r *question) { r.Histories[4].EarlierFailures = -1 }, field: "histories[4].earlier_failures"},
		"a back-off of no time": {
			spoil: func(r *question) { r.Settings.PodFailureBackoff = durationpb.New(0) },
			field: "settings.pod_failure_backoff",
		},
		"a back-off rule without code": {
			spoil: func(r *question) { r.Policy.Rules[1].OnExitCodes.Values = nil },
			field: "policy.rules[1].on_exit_codes.values",
		},
	})
}

func TestQuestionsWithUnknownFieldsAreUnsupported(t *testing.T) {
	unknown := []byte{0xf8, 0xff, 0x03, 0x01} // Field 8191, the varint 1.
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			req := q.request()
			req.ProtoReflect().SetUnknown(unknown)
			if _, err := q.ask(req); err == nil {
				t.Error("an unknown field of the request itself: no error")
			}
			policyQuestion := validPolicyQuestion()
			policyQuestion.Failures[2].Conditions[0].ProtoReflect().SetUnknown(unknown)
			_, err := engine.MatchPodFailurePolicy(policyQuestion)
			if unsupported, ok := errors.AsType[*engine.UnsupportedError](err); !ok || unsupported.Field != "failures[2].conditions[0].8191" {
				t.Errorf("error = %v, want an UnsupportedError of failures[2].conditions[0].8191", err)
			}
		})
	}
}

// FuzzQuestions feeds bytes to every question. Whatever they are, the engine does
// not panic, changes nothing, and gives the same answer twice.
func FuzzQuestions(f *testing.F) {
	f.Add([]byte{})
	for _, q := range questions() {
		f.Add(wireBytes(f, q.request()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, q := range questions() {
			req := q.request()
			if proto.Unmarshal(data, req) == nil { // resets req first
				askSafely(t, name, q, req)
			}
		}
	})
}

func askSafely(t rapid.TB, name string, q question, req proto.Message) proto.Message {
	before := proto.Clone(req)
	resp, err := q.ask(req)
	if !proto.Equal(before, req) {
		t.Errorf("%s: the request was changed:\n%s", name, render(req))
	}
	if err != nil {
		_, invalid := errors.AsType[*engine.InvalidRequestError](err)
		_, unsupported := errors.AsType[*engine.UnsupportedError](err)
		if !invalid && !unsupported {
			t.Errorf("%s: error %v", name, err)
		}
		return nil
	}
	again, err := q.ask(req)
	if err != nil || string(wireBytes(t, again)) != string(wireBytes(t, resp)) {
		t.Errorf("%s: another answer to the same request: %v", name, err)
	}
	return resp
}
