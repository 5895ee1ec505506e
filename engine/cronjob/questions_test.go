package cronjob_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/annotation"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// nightly is a schedule that clocks in Berlin skip on 2026-03-29, and show twice
// on 2026-10-25.
func nightly(annotations map[string]string) *jobpolicyv1.ScheduleHistory {
	return &jobpolicyv1.ScheduleHistory{Spec: &jobpolicyv1.CronJobSpec{
		Schedule: "30 2 * * *", TimeZone: proto.String("Europe/Berlin"), CreationTime: timestamp("2026-03-27T00:00:00Z"), Annotations: annotations,
	}}
}

func validScheduleQuestion() *jobpolicyv1.ListScheduledRunsRequest {
	ran := nightly(map[string]string{annotation.SkippedHour: "RunAfter"})
	ran.LastScheduleTime = timestamp("2026-03-28T01:30:00Z")
	return &jobpolicyv1.ListScheduledRunsRequest{
		Now: timestamp("2026-03-28T12:00:00Z"), MaxNext: 2, MaxMissed: 1,
		Schedules: []*jobpolicyv1.ScheduleHistory{
			nightly(nil), ran,
			{Spec: &jobpolicyv1.CronJobSpec{Schedule: "at night", CreationTime: timestamp("2026-03-27T00:00:00Z")}},
			{Spec: &jobpolicyv1.CronJobSpec{Schedule: "0 0 31 2 *", CreationTime: timestamp("2026-03-27T00:00:00Z")}},
			{Spec: &jobpolicyv1.CronJobSpec{Schedule: "@daily", TimeZone: proto.String("Moon"), CreationTime: timestamp("2026-03-27T00:00:00Z")}},
		},
	}
}

func TestScheduledRunsAreListed(t *testing.T) {
	got, err := cronjob.ListScheduledRuns(validScheduleQuestion())
	if err != nil {
		t.Fatal(err)
	}
	times := func(texts ...string) []*timestamppb.Timestamp {
		var list []*timestamppb.Timestamp
		for _, text := range texts {
			list = append(list, timestamp(text))
		}
		return list
	}
	want := &jobpolicyv1.ListScheduledRunsResponse{Runs: []*jobpolicyv1.ScheduledRuns{
		{
			Next:   times("2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"),
			Missed: times("2026-03-28T01:30:00Z"), MissedCount: 2,
		},
		{Next: times("2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z")},
		{Error: "expected exactly 5 fields, found 2: [at night]"},
		{},
		{Error: `unknown time zone Moon`},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestBadScheduleQuestionsAreRefusedByField(t *testing.T) {
	type request = jobpolicyv1.ListScheduledRunsRequest
	cases := map[string]struct {
		spoil func(*request)
		want  string
	}{
		"no time":               {spoil: func(r *request) { r.Now = nil }, want: "now"},
		"a list of 101":         {spoil: func(r *request) { r.MaxNext = 101 }, want: "max_next"},
		"a list of less than 0": {spoil: func(r *request) { r.MaxMissed = -1 }, want: "max_missed"},
		"a list of 11":          {spoil: func(r *request) { r.MaxMissed = 11 }, want: "max_missed"},
		"101 schedules":         {spoil: func(r *request) { r.Schedules = make([]*jobpolicyv1.ScheduleHistory, 101) }, want: "schedules"},
		"no schedule":           {spoil: func(r *request) { r.Schedules[1] = nil }, want: "schedules[1].spec"},
		"a schedule of 4097": {
			spoil: func(r *request) { r.Schedules[1].Spec.Schedule = strings.Repeat("*", 4097) },
			want:  "schedules[1].spec.schedule",
		},
		"a zone of 257": {
			spoil: func(r *request) { r.Schedules[1].Spec.TimeZone = proto.String(strings.Repeat("x", 257)) },
			want:  "schedules[1].spec.time_zone",
		},
		"a caller in no zone": {
			spoil: func(r *request) { r.Schedules[1].Spec.LocalTimeZone = "Moon" },
			want:  "schedules[1].spec.local_time_zone",
		},
		"no creation time": {
			spoil: func(r *request) { r.Schedules[1].Spec.CreationTime = nil },
			want:  "schedules[1].spec.creation_time",
		},
		"a last run at no time": {
			spoil: func(r *request) { r.Schedules[1].LastScheduleTime = &timestamppb.Timestamp{Nanos: -1} },
			want:  "schedules[1].last_schedule_time",
		},
		"an option without end": {
			spoil: func(r *request) {
				r.Schedules[1].Spec.Annotations[annotation.SkippedHour] = strings.Repeat("x", 4097)
			},
			want: "schedules[1].spec.annotations",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := validScheduleQuestion()
			tc.spoil(req)
			_, err := cronjob.ListScheduledRuns(req)
			invalid, ok := errors.AsType[*engine.InvalidRequestError](err)
			if !ok || invalid.Violations[0].Field != tc.want {
				t.Errorf("error = %v, want an InvalidRequestError of %s", err, tc.want)
			}
		})
	}
}

func TestScheduleQuestionWithUnknownFieldsIsUnsupported(t *testing.T) {
	req := validScheduleQuestion()
	req.Schedules[1].Spec.CreationTime.ProtoReflect().SetUnknown([]byte{0xf8, 0xff, 0x03, 0x01}) // field 8191, the varint 1
	_, err := cronjob.ListScheduledRuns(req)
	unsupported, ok := errors.AsType[*engine.UnsupportedError](err)
	if !ok || unsupported.Field != "schedules[1].spec.creation_time.8191" {
		t.Errorf("error = %v, want an UnsupportedError of schedules[1].spec.creation_time.8191", err)
	}
}

// FuzzListScheduledRuns feeds bytes. Whatever they are, the engine does not panic, and
// gives the same answer twice. The next times that it lists are in the future, and the
// missed ones are not.
func FuzzListScheduledRuns(f *testing.F) {
	f.Add([]byte{})
	f.Add(wireBytes(f, validScheduleQuestion()))
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &jobpolicyv1.ListScheduledRunsRequest{}
		if proto.Unmarshal(data, req) != nil {
			return
		}
		before := proto.CloneOf(req)
		resp, err := cronjob.ListScheduledRuns(req)
		if !proto.Equal(before, req) {
			t.Error("the request was changed")
		}
		if err != nil {
			return
		}
		again, err := cronjob.ListScheduledRuns(req)
		if err != nil || string(wireBytes(t, again)) != string(wireBytes(t, resp)) {
			t.Errorf("another answer to the same request: %v", err)
		}
		now := req.GetNow().AsTime()
		for _, runs := range resp.GetRuns() {
			for _, at := range runs.GetNext() {
				if at.CheckValid() != nil || !at.AsTime().After(now.Truncate(time.Second)) {
					t.Errorf("next at %v, asked at %v", at, now)
				}
			}
			for _, at := range runs.GetMissed() {
				if at.CheckValid() != nil || at.AsTime().After(now) {
					t.Errorf("missed at %v, asked at %v", at, now)
				}
			}
		}
	})
}

// A decision starts the newest of the times that ListScheduledRuns lists as missed,
// skips the others, and waits for the first that is next.
func TestListScheduledRunsIsWhatDecisionsDo(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		req.Jobs, req.Status.Active = nil, nil
		delete(req.Spec.Annotations, annotation.MissedBeforeEdit)
		req.Spec.Suspend, req.Spec.Deleting = false, false
		decision, err := cronjob.Decide(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := cronjob.ListScheduledRuns(&jobpolicyv1.ListScheduledRunsRequest{
			Now: req.GetNow(), MaxMissed: 10,
			Schedules: []*jobpolicyv1.ScheduleHistory{{Spec: req.GetSpec(), LastScheduleTime: req.GetStatus().GetLastScheduleTime()}},
		})
		if err != nil {
			t.Fatal(err)
		}
		runs, e := answer.GetRuns()[0], decision.GetExplanation()
		if want := min(10, runs.GetMissedCount()); int64(len(runs.GetMissed())) != want {
			t.Fatalf("missed times listed: %d, want %d: %v", len(runs.GetMissed()), want, runs)
		}
		if e.GetDecidingRule() == jobpolicyv1.Rule_RULE_UNPARSEABLE_SCHEDULE {
			seen["unreadable"]++
		}
		if (e.GetDecidingRule() == jobpolicyv1.Rule_RULE_UNPARSEABLE_SCHEDULE) && runs.GetError() == "" {
			t.Fatalf("the decision cannot read the schedule, the answer is %v", runs)
		}
		next, due := append(runs.GetNext(), nil)[0], append(runs.GetMissed(), nil)
		if !proto.Equal(e.GetNextScheduleTime(), next) {
			t.Fatalf("the decision waits for %v, the answer is %v", e.GetNextScheduleTime(), runs)
		}
		if at := decision.GetCreate().GetScheduledTime(); at != nil {
			seen["started"]++
			if !proto.Equal(at, due[0]) {
				t.Fatalf("the decision starts the run of %v, the answer is %v", at, runs)
			}
		}
		if next == nil {
			return
		}
		seen["next"]++
		skipped := e.GetSkipped()
		missed := runs.GetMissed()
		if len(missed) > 0 && e.GetSkippedTotal() == runs.GetMissedCount()-1 {
			missed = missed[1:] // the newest may still start
		} else if e.GetSkippedTotal() != runs.GetMissedCount() {
			t.Fatalf("the decision skips %d, the answer is %v", e.GetSkippedTotal(), runs)
		}
		for i, at := range missed {
			seen["skipped"]++
			if !proto.Equal(skipped[i].GetScheduledTime(), at) {
				t.Fatalf("the decision skips %v, the answer is %v", skipped, runs)
			}
		}
	})
	for _, want := range []string{"unreadable", "started", "next", "skipped"} {
		if seen[want] == 0 {
			t.Errorf("no draw was %s: %v", want, seen)
		}
	}
}
