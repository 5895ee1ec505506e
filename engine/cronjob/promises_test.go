package cronjob_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// brokenPromises lists the rules for all decisions that this one breaks.
func brokenPromises(req *jobpolicyv1.DecideCronJobRequest, resp *jobpolicyv1.DecideCronJobResponse) []string {
	var broken []string
	promise := func(ok bool, format string, args ...any) {
		if !ok {
			broken = append(broken, fmt.Sprintf(format, args...))
		}
	}
	now := req.GetNow().AsTime()
	promise(resp.GetRequestId() == req.GetRequestId(), "the request's id is %q", resp.GetRequestId())
	if at := resp.GetRequeueTime(); at != nil {
		promise(at.IsValid() && at.AsTime().After(now), "I11: asks again at %s, now %s", at.AsTime(), now)
	}
	_, err := protojson.Marshal(resp) // It has no timestamp behind the end of the calendar.
	promise(err == nil, "times: %v", err)
	for name, at := range map[string][2]*timestamppb.Timestamp{
		"last schedule time":   {req.GetStatus().GetLastScheduleTime(), resp.GetStatus().GetLastScheduleTime()},
		"last successful time": {req.GetStatus().GetLastSuccessfulTime(), resp.GetStatus().GetLastSuccessfulTime()},
	} {
		promise(at[1].GetNanos() == 0 || proto.Equal(at[0], at[1]), "the %s has fractions of a second, which no status keeps: %s", name, at[1].AsTime())
	}
	kinds := 0
	for _, has := range []bool{
		resp.GetCreate() != nil, resp.GetStatus() != nil, resp.GetCreate() == nil && resp.GetEdits() != nil,
		resp.GetCreate() == nil && len(resp.GetDelete()) > 0,
	} {
		if has {
			kinds++
		}
	}
	applies := resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_APPLY
	promise(applies == (resp.GetFollowUp() == jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE), "%s with follow up %s", resp.GetDisposition(), resp.GetFollowUp())
	promise(kinds == 0 && !applies || kinds == 1 && applies, "kinds of steps: %d with %s", kinds, resp.GetDisposition())
	for n, d := range resp.GetDelete() {
		promise(n < len(resp.GetEvents()) && resp.GetEvents()[n].GetReason() == "SuccessfulDelete", "event %d is not that of the deletion of %s", n, d.GetName())
		i := slices.IndexFunc(req.GetJobs(), func(job *jobpolicyv1.OwnedJob) bool { return bytes.Equal(job.GetUid(), d.GetUid()) })
		promise(i >= 0 && !req.GetJobs()[max(i, 0)].GetDeleting(), "a deletion of %s, which is not there or is going", d.GetName())
		if i >= 0 {
			finished := req.GetJobs()[i].GetOutcome() != outcomeActive
			promise(finished == (d.GetReason() == jobpolicyv1.DeleteJobReason_DELETE_JOB_REASON_HISTORY_LIMIT),
				"%s is deleted by %s", d.GetName(), d.GetReason())
		}
	}
	if create := resp.GetCreate(); create != nil {
		promise(len(create.GetName()) <= 63, "the name %s is too long", create.GetName())
		promise(len(req.GetSpec().GetOptionProblems()) == 0 || req.GetSpec().GetOptions() != nil, "a creation for a CronJob whose options nobody knows")
		promise(!req.GetSpec().GetDeleting(), "a creation for a CronJob that is being deleted")
		at := create.GetScheduledTime()
		promise(at == nil || !at.AsTime().After(now), "a run of the future, %s", at.AsTime())
		promise(at == nil || !req.GetSpec().GetSuspend(), "a run of the schedule of a suspended CronJob")
		promise(hasRoom(req) || len(resp.GetDelete()) > 0, "a creation in a group without room")
	}
	for _, e := range resp.GetEvents() {
		promise(e.GetReason() != "" && e.GetType() != 0 && e.GetMessage() != "", "the event %v", e)
	}
	e := resp.GetExplanation()
	promise(e.GetSummary() != "", "no summary")
	promise(len(e.GetSkipped()) <= 10 && len(e.GetKept()) <= 100, "an explanation without end")
	if st := resp.GetStatus(); st != nil {
		last := req.GetStatus().GetLastScheduleTime()
		promise(last == nil || last.AsTime().After(now) || !st.GetLastScheduleTime().AsTime().Before(last.AsTime()), "the last run is forgotten")
		promise(last == nil || !st.GetLastScheduleTime().AsTime().After(later(now, last.AsTime())), "a last run of the future")
		for _, a := range st.GetActive() {
			promise(slices.ContainsFunc(req.GetJobs(), func(job *jobpolicyv1.OwnedJob) bool {
				return bytes.Equal(job.GetUid(), a.GetUid()) && job.GetOutcome() == outcomeActive
			}), "%s is listed as active", a.GetName())
		}
	}
	return broken
}

// hasRoom reports whether one more run of the CronJob's group may be active.
func hasRoom(req *jobpolicyv1.DecideCronJobRequest) bool {
	group, others := req.GetSpec().GetOptions().GetGroup(), req.GetGroup()
	active := int(others.GetActiveRuns())
	for _, job := range req.GetJobs() {
		listed := slices.ContainsFunc(req.GetStatus().GetActive(), func(a *jobpolicyv1.ActiveJob) bool { return bytes.Equal(a.GetUid(), job.GetUid()) })
		if job.GetOutcome() == outcomeActive && (listed || job.GetScheduledTime() != nil || job.GetRunNow() != "") {
			active++
		}
	}
	smallest := others.GetMaxActiveRuns() == 0 || active < int(others.GetMaxActiveRuns())
	return group == nil || active < int(group.GetMaxActiveRuns()) && smallest && others.GetUndecided() == 0
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func wireBytes(t interface{ Fatal(...any) }, m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPromisesNoticeWhatTheyForbid(t *testing.T) {
	req := newCluster().mustTell(t, "job a start=2026-01-01T00:00:00Z", "now 2026-01-01T00:30:00Z").req
	deleted := &jobpolicyv1.JobEvent{Type: jobpolicyv1.EventType_EVENT_TYPE_NORMAL, Reason: "SuccessfulDelete", Message: "Deleted job a"}
	bad := map[string]*jobpolicyv1.DecideCronJobResponse{
		"a requeue time of the past": {RequeueTime: timestamp("2026-01-01T00:30:00Z")},
		"two kinds of steps": {
			Create: &jobpolicyv1.CreateJob{Name: "x"}, Status: &jobpolicyv1.CronJobStatus{}, Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
		},
		"history of what runs": {
			Delete:      []*jobpolicyv1.DeleteJob{{Uid: uid("a"), Reason: jobpolicyv1.DeleteJobReason_DELETE_JOB_REASON_HISTORY_LIMIT}},
			Events:      []*jobpolicyv1.JobEvent{deleted},
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
		},
		"a deletion whose event is not the first": {
			Delete:      []*jobpolicyv1.DeleteJob{{Uid: uid("a"), Reason: jobpolicyv1.DeleteJobReason_DELETE_JOB_REASON_REPLACED}},
			Events:      []*jobpolicyv1.JobEvent{{Type: deleted.GetType(), Reason: "SuccessfulCreate", Message: "Created job b"}, deleted},
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
		},
		"a run of the future": {
			Create: &jobpolicyv1.CreateJob{ScheduledTime: timestamp("2026-01-01T01:00:00Z")}, Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
		},
		"asking again at once for nothing": {
			Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, FollowUp: jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE,
		},
		"a finished Job listed": {
			Status:      &jobpolicyv1.CronJobStatus{Active: []*jobpolicyv1.ActiveJob{{Uid: uid("b")}}},
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
		},
	}
	for name, resp := range bad {
		if resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_APPLY {
			resp.FollowUp = jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE
		}
		resp.Explanation = &jobpolicyv1.CronJobExplanation{Summary: "s"}
		if len(brokenPromises(req, resp)) != 1 {
			t.Errorf("%s: broken promises = %q, want one", name, brokenPromises(req, resp))
		}
	}
}
