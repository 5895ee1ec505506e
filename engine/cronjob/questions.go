package cronjob

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/internal/check"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract for ListScheduledRuns. The proto file states each one at its
// field.
const (
	maxSchedules    = 100
	maxNextRuns     = 100
	maxListedMissed = maxListedSkipped
)

// ListScheduledRuns says when schedules are due next, and which times they missed, as
// Decide does. Errors are those of Decide; a schedule that cannot be read is not an
// error.
func ListScheduledRuns(req *jobpolicyv1.ListScheduledRunsRequest) (*jobpolicyv1.ListScheduledRunsResponse, error) {
	if err := check.Request(req, func(c *check.Checker) { checker{c}.schedules(req) }); err != nil {
		return nil, err
	}
	resp := &jobpolicyv1.ListScheduledRunsResponse{}
	for _, h := range req.GetSchedules() {
		resp.Runs = append(resp.Runs, scheduledRuns(req, h))
	}
	return resp, nil
}

func scheduledRuns(req *jobpolicyv1.ListScheduledRunsRequest, h *jobpolicyv1.ScheduleHistory) *jobpolicyv1.ScheduledRuns {
	t := readTimetable(h.GetSpec())
	for _, err := range []error{t.zoneErr, t.scheduleErr} {
		if err != nil {
			return &jobpolicyv1.ScheduledRuns{Error: err.Error()}
		}
	}
	now := req.GetNow().AsTime()
	after := h.GetSpec().GetCreationTime()
	if last := t.lastRun(h.GetLastScheduleTime(), now); last != nil {
		after = last
	}
	d := t.dueAfter(after.AsTime(), now)
	runs := &jobpolicyv1.ScheduledRuns{MissedCount: d.times}
	if most := int(req.GetMaxMissed()); !d.at.IsZero() && most > 0 {
		runs.Missed = append(runs.Missed, timestamppb.New(d.at))
		for _, at := range t.missedBefore(d, most-1) {
			runs.Missed = append(runs.Missed, timestamppb.New(at))
		}
	}
	for at, ok := d.next, !d.next.IsZero(); ok && len(runs.Next) < max(1, int(req.GetMaxNext())); at, ok = t.schedule.Next(at) {
		runs.Next = append(runs.Next, timestamppb.New(at))
	}
	return runs
}

func (c checker) schedules(req *jobpolicyv1.ListScheduledRunsRequest) {
	c.RequiredTime("now", req.GetNow())
	c.Between("max_next", int64(req.GetMaxNext()), 0, maxNextRuns)
	c.Between("max_missed", int64(req.GetMaxMissed()), 0, maxListedMissed)
	check.Each(c.Checker, "schedules", maxSchedules, req.GetSchedules(), func(h *jobpolicyv1.ScheduleHistory) {
		c.timetable(h.GetSpec())
		c.OptionalTime("last_schedule_time", h.GetLastScheduleTime())
	})
}
