package cronjob

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
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
	if err := engine.CheckKnown(req); err != nil {
		return nil, err
	}
	if err := validateSchedules(req); err != nil {
		return nil, err
	}
	resp := &jobpolicyv1.ListScheduledRunsResponse{}
	for _, h := range req.GetSchedules() {
		resp.Runs = append(resp.Runs, scheduledRuns(req, h))
	}
	return resp, nil
}

func scheduledRuns(req *jobpolicyv1.ListScheduledRunsRequest, h *jobpolicyv1.ScheduleHistory) *jobpolicyv1.ScheduledRuns {
	t := readTimetable(h.GetSpec(), readOptions(h.GetSpec().GetAnnotations()).clock)
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

func validateSchedules(req *jobpolicyv1.ListScheduledRunsRequest) error {
	c := &checker{}
	c.requiredTime("now", req.GetNow())
	c.between("max_next", req.GetMaxNext(), maxNextRuns)
	c.between("max_missed", req.GetMaxMissed(), maxListedMissed)
	n := len(req.GetSchedules())
	if c.require(n <= maxSchedules, "schedules", "must have at most %d entries, has %d", maxSchedules, n) {
		for i, h := range req.GetSchedules() {
			c.list, c.index = "schedules", i
			c.timetable(".spec.", h.GetSpec())
			c.time(".last_schedule_time", h.GetLastScheduleTime())
		}
		c.leave()
	}
	if len(c.violations) > 0 {
		return &engine.InvalidRequestError{Violations: c.violations}
	}
	return nil
}
