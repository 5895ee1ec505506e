package cronjob

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/engine/zone"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A timetable is a CronJob's schedule, in its time zone and with its options for
// clock changes.
type timetable struct {
	// zone is the zone that spec.time_zone names, or UTC without one; nil if zoneErr is
	// set.
	zone    *time.Location
	zoneErr error
	// schedule is nil if scheduleErr or zoneErr is set.
	schedule    schedule.Schedule
	scheduleErr error
	// zoneInSchedule says that the schedule contains a TZ, which takes precedence over
	// spec.time_zone.
	zoneInSchedule bool
}

// readTimetable reads the schedule in its time zone: the zone that it names itself,
// else spec.time_zone, else the caller's.
func readTimetable(spec *jobpolicyv1.CronJobSpec) timetable {
	t := timetable{zoneInSchedule: strings.Contains(spec.GetSchedule(), "TZ")}
	local, _ := zone.Load(spec.GetLocalTimeZone())
	inZone := local
	switch name := spec.GetTimeZone(); {
	case spec.TimeZone == nil:
		t.zone = time.UTC
	case name == "Local":
		t.zone = local
	default:
		if t.zone, t.zoneErr = zone.Load(name); t.zoneErr != nil {
			return t
		}
		inZone = t.zone
	}
	if t.zoneInSchedule {
		inZone = local
	}
	t.schedule, t.scheduleErr = schedule.Parse(spec.GetSchedule(), inZone, ClockOptions(spec.GetOptions()))
	return t
}

// lastRun is the recorded scheduled time of the last run. If the schedule has a time
// between now and the recorded time, the clock was ahead when it was written, and the
// schedule would stop until then. In that case lastRun is now. A recorded time that is
// the next time of the schedule is kept, because that run was started, perhaps by
// another replica whose clock is ahead by a second.
func (t timetable) lastRun(recorded *timestamppb.Timestamp, now time.Time) *timestamppb.Timestamp {
	if recorded == nil || t.schedule == nil {
		return recorded
	}
	if next, ok := t.schedule.Next(now); !ok || !next.Before(recorded.AsTime()) {
		return recorded
	}
	return timestamppb.New(now.Truncate(time.Second))
}

// dueAfter returns the times of the schedule that are later than the parameter after, up
// to now. The schedule must be readable.
func (t timetable) dueAfter(after, now time.Time) due {
	d := due{after: after}
	from := d.after
	if at, ok := t.schedule.Last(d.after, now); ok {
		d.at, from = at, at
		d.times = t.schedule.Count(d.after, now)
	}
	d.next, _ = t.schedule.Next(from)
	return d
}

// missedBefore are the last n times that were due before the latest one, the
// newest first.
func (t timetable) missedBefore(d due, n int) []time.Time {
	var missed []time.Time
	for before := d.at; len(missed) < n; {
		at, ok := t.schedule.Last(d.after, before.Add(-time.Second))
		if !ok {
			break
		}
		missed, before = append(missed, at), at
	}
	return missed
}
