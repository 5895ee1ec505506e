package cronjob_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// FuzzListScheduledRuns feeds bytes. Whatever they are, the engine does not panic, and
// gives the same answer twice. The next times that it lists are in the future, and the
// missed ones are not.
func FuzzListScheduledRuns(f *testing.F) {
	f.Add([]byte{})
	f.Add(wireBytes(f, &jobpolicyv1.ListScheduledRunsRequest{
		Now: timestamp("2026-03-28T12:00:00Z"), MaxNext: 2, MaxMissed: 1,
		Schedules: []*jobpolicyv1.ScheduleHistory{{Spec: &jobpolicyv1.CronJobSpec{
			Schedule: "30 2 * * *", TimeZone: proto.String("Europe/Berlin"), CreationTime: timestamp("2026-03-27T00:00:00Z"),
		}}},
	}))
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
		req.Spec.Options.MissedBeforeEdit = jobpolicyv1.MissedBeforeEdit_MISSED_BEFORE_EDIT_UNSPECIFIED
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
