package engine_test

import (
	"errors"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/engine/statusrules"
	"jobpolicy.dev/proto/conformance/casefile"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A question is one partial question to the engine.
type question struct {
	// empty returns a request that asks nothing.
	empty func() proto.Message
	ask   func(proto.Message) (proto.Message, error)
}

func asking[Req, Resp proto.Message](ask func(Req) (Resp, error)) question {
	var none Req
	return question{
		empty: func() proto.Message { return none.ProtoReflect().New().Interface() },
		ask: func(m proto.Message) (proto.Message, error) {
			resp, err := ask(m.(Req))
			if err != nil {
				return nil, err
			}
			return resp, nil
		},
	}
}

// questions are all of them, by their folders in proto/conformance.
func questions() map[string]question {
	return map[string]question{
		"match_pod_failure_policy": asking(engine.MatchPodFailurePolicy),
		"match_success_policy":     asking(engine.MatchSuccessPolicy),
		"compute_pod_backoff":      asking(engine.ComputePodBackoff),
		"choose_pods_to_delete":    asking(engine.ChoosePodsToDelete),
		"compute_indexes":          asking(engine.ComputeIndexes),
		"compute_deadlines":        asking(engine.ComputeDeadlines),
		"list_scheduled_runs":      asking(cronjob.ListScheduledRuns),
		"check_job_status":         asking(engine.CheckJobStatus),
	}
}

// A writtenRequest is a request of a written case.
type writtenRequest struct {
	name string
	m    proto.Message
}

func writtenFile(folder string) string {
	return filepath.Join("../proto/conformance", folder, "written.jsonl")
}

// written are the requests of partial questions, which are written by hand.
func written(t testing.TB, folder string, q question) (list []writtenRequest) {
	t.Helper()
	for _, c := range readCases(t, writtenFile(folder)) {
		req := q.empty()
		if err := protojson.Unmarshal(c.Request, req); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		list = append(list, writtenRequest{c.Name, req})
	}
	return list
}

// The answers to the written requests are the engine's.
func TestWrittenCases(t *testing.T) {
	for folder, q := range questions() {
		t.Run(folder, func(t *testing.T) {
			var answers casefile.File
			for _, req := range written(t, folder, q) {
				resp, err := q.ask(req.m)
				invalid, refused := errors.AsType[*engine.InvalidRequestError](err)
				switch {
				case refused:
					answers.RefuseNamed(req.name, req.m, invalid.Violations[0].Field)
				case err != nil:
					t.Fatalf("%s: %v", req.name, err)
				default:
					answers.AddNamed(req.name, req.m, resp)
				}
			}
			if err := answers.Check(writtenFile(folder), *writeCases); err != nil {
				t.Error(err)
			}
		})
	}
}

func badTime() *timestamppb.Timestamp { return &timestamppb.Timestamp{Seconds: 1 << 60} }

// An unwritable request cannot be a written case: JSON has no word for what is wrong with
// it, it is too long, or a newer engine takes it.
type unwritable struct {
	ask     question
	request proto.Message
	field   string // the one with the mistake
}

func unwritables() map[string]unwritable {
	checking := func(minor int32, after *jobpolicyv1.JobStatus) *jobpolicyv1.CheckJobStatusRequest {
		return &jobpolicyv1.CheckJobStatusRequest{
			KubernetesMinor: minor, Updates: []*jobpolicyv1.JobStatusUpdate{{Spec: &jobpolicyv1.JobSpec{}, After: after}},
		}
	}
	started := &jobpolicyv1.JobStatus{StartTime: at(0)}
	return map[string]unwritable{
		"100001 pods": {
			asking(engine.ChoosePodsToDelete),
			&jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: []*jobpolicyv1.ScaleDown{{Pods: make([]*jobpolicyv1.ActivePod, 100_001)}}}, "jobs[0].pods",
		},
		"a pod that is none": {
			asking(engine.ChoosePodsToDelete),
			&jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: []*jobpolicyv1.ScaleDown{{Pods: make([]*jobpolicyv1.ActivePod, 1)}}}, "jobs[0].pods[0]",
		},
		"200001 ranges in two sets": {
			asking(engine.ComputeIndexes),
			&jobpolicyv1.ComputeIndexesRequest{Jobs: []*jobpolicyv1.JobIndexes{{
				CompletedIndexes: ranges(0, 0), NewlyFailed: &jobpolicyv1.IndexSet{Ranges: make([]*jobpolicyv1.IndexRange, 200_000)},
			}}}, "jobs[0].newly_failed",
		},
		"a start at no time": {
			asking(engine.ComputeDeadlines),
			&jobpolicyv1.ComputeDeadlinesRequest{Now: at(0), Jobs: []*jobpolicyv1.JobLifetime{{
				Spec: &jobpolicyv1.JobSpec{}, Status: &jobpolicyv1.JobStatus{StartTime: badTime()},
			}}}, "jobs[0].status.start_time",
		},
		"10001 failures": {
			asking(engine.MatchPodFailurePolicy),
			&jobpolicyv1.MatchPodFailurePolicyRequest{Failures: make([]*jobpolicyv1.PodFailure, 10_001)}, "failures",
		},
		"a last run at no time": {
			asking(cronjob.ListScheduledRuns),
			&jobpolicyv1.ListScheduledRunsRequest{Now: at(0), Schedules: []*jobpolicyv1.ScheduleHistory{{
				Spec: &jobpolicyv1.CronJobSpec{CreationTime: at(0)}, LastScheduleTime: badTime(),
			}}}, "schedules[0].last_schedule_time",
		},
		"1001 updates": {
			asking(engine.CheckJobStatus),
			&jobpolicyv1.CheckJobStatusRequest{KubernetesMinor: 37, Updates: make([]*jobpolicyv1.JobStatusUpdate, 1001)}, "updates",
		},
		"a version too old": {asking(engine.CheckJobStatus), checking(statusrules.OldestMinor-1, started), "kubernetes_minor"},
		"a version to come": {asking(engine.CheckJobStatus), checking(statusrules.NewestMinor+1, started), "kubernetes_minor"},
		"a completion at no time": {
			asking(engine.CheckJobStatus), checking(37, &jobpolicyv1.JobStatus{CompletionTime: badTime()}), "updates[0].after.completion_time",
		},
		"a start at no time in a status": {
			asking(engine.CheckJobStatus), checking(37, &jobpolicyv1.JobStatus{StartTime: badTime()}), "updates[0].after.start_time",
		},
		"100001 uncounted pods": {
			asking(engine.CheckJobStatus),
			checking(37, &jobpolicyv1.JobStatus{Uncounted: &jobpolicyv1.UncountedTerminatedPods{Failed: make([][]byte, 100_001)}}),
			"updates[0].after.uncounted.failed",
		},
		"200001 ranges": {
			asking(engine.CheckJobStatus),
			checking(37, &jobpolicyv1.JobStatus{CompletedIndexes: &jobpolicyv1.IndexSet{Ranges: make([]*jobpolicyv1.IndexRange, 200_001)}}),
			"updates[0].after.completed_indexes.ranges",
		},
	}
}

func TestQuestionsThatCannotBeWrittenAreRefusedByField(t *testing.T) {
	for name, tc := range unwritables() {
		t.Run(name, func(t *testing.T) {
			_, err := tc.ask.ask(tc.request)
			invalid, ok := errors.AsType[*engine.InvalidRequestError](err)
			if !ok || len(invalid.Violations) != 1 || invalid.Violations[0].Field != tc.field {
				t.Errorf("error = %v, want one violation, of %s", err, tc.field)
			}
		})
	}
}

// A written case does not hold the texts.
func TestAViolationSaysWhatWasExpectedAndFound(t *testing.T) {
	answer, err := engine.CheckJobStatus(&jobpolicyv1.CheckJobStatusRequest{KubernetesMinor: 37, Updates: []*jobpolicyv1.JobStatusUpdate{{
		Spec: &jobpolicyv1.JobSpec{}, After: &jobpolicyv1.JobStatus{Active: 1, Ready: proto.Int32(2)},
	}}})
	if err != nil || answer.GetChecks()[0].GetViolations()[0].GetDescription() != "must not be above active (1), is 2" {
		t.Errorf("CheckJobStatus = %v, %v", answer, err)
	}
}

// Every written request is refused if it has an unknown field. What is nested is found by
// the same search: see unknown_test.go.
func TestQuestionsWithUnknownFieldsAreUnsupported(t *testing.T) {
	for folder, q := range questions() {
		for _, req := range written(t, folder, q) {
			setUnknown(req.m, 8191)
			_, err := q.ask(req.m)
			if unsupported, ok := errors.AsType[*engine.UnsupportedError](err); !ok || unsupported.Field != "8191" {
				t.Errorf("%s, %s: error = %v, want an UnsupportedError of 8191", folder, req.name, err)
			}
		}
	}
}

// FuzzQuestions feeds bytes to every question. Whatever they are, the engine does
// not panic, changes nothing, and gives the same answer twice.
func FuzzQuestions(f *testing.F) {
	f.Add([]byte{})
	for folder, q := range questions() {
		for _, req := range written(f, folder, q) {
			f.Add(wireBytes(f, req.m))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, q := range questions() {
			req := q.empty()
			if proto.Unmarshal(data, req) == nil {
				checkAnswer(t, askSafely(t, name, q, req))
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

// checkAnswer checks what each violation of a status must say, and how many there may be.
func checkAnswer(t *testing.T, answer proto.Message) {
	checks, _ := answer.(*jobpolicyv1.CheckJobStatusResponse)
	for _, c := range checks.GetChecks() {
		if n := len(c.GetViolations()); n > statusrules.MaxViolations {
			t.Errorf("%d violations", n)
		}
		for _, v := range c.GetViolations() {
			if v.GetRule() == "" || v.GetField() == "" || v.GetDescription() == "" {
				t.Errorf("half a violation: %v", v)
			}
		}
	}
}
