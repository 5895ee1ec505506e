package world

import (
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
)

// startsWithin is how long after its time a run may start if nothing hinders the executors.
const startsWithin = time.Minute

// A timetable is the schedule of a CronJob in its zone, as the library of the built-in
// controller reads it. The engine uses another library.
type timetable struct {
	cron.Schedule
	zone *time.Location
	// every is the interval of an @every schedule. Its times are counted from the last run.
	every time.Duration
}

// timetable is nil if the schedule or the zone cannot be read.
func (j *judge) timetable(c *batchv1.CronJob) *timetable {
	schedule, err := cron.ParseStandard(c.Spec.Schedule)
	if err != nil {
		return nil
	}
	zone, err := time.LoadLocation(valueOr(c.Spec.TimeZone, j.zone))
	if err != nil {
		return nil
	}
	interval, _ := schedule.(cron.ConstantDelaySchedule)
	return &timetable{schedule, zone, interval.Delay}
}

// after is the first time after another; zero if there is none.
func (t *timetable) after(at time.Time) time.Time { return t.Next(at.In(t.zone)) }

// onSchedule reports whether a run's time is one of the schedule.
func (j *judge) onSchedule(c *cronRecord, at time.Time) bool {
	return j.cronLately(c, func(cron *batchv1.CronJob) bool {
		t := j.timetable(cron)
		switch {
		case t == nil:
			return true
		case t.every > 0:
			return j.unsure(c) || at.Sub(c.base())%t.every == 0
		}
		return t.after(at.Add(-time.Second)).Equal(at)
	})
}

// base is the time from which the times of an interval are counted: the time of the last run,
// even if it started no Job because the Job of an earlier run in the same minute has its name.
func (c *cronRecord) base() time.Time {
	base := c.lastRun
	if told := c.cron.Status.LastScheduleTime; told != nil {
		base = latest(base, told.Time)
	}
	if base.IsZero() {
		return c.cron.CreationTimestamp.Time
	}
	return base
}

// unsure reports whether the base is unknown: clocks were wrong, or somebody else created a Job of
// the CronJob, which may count as its last run.
func (j *judge) unsure(c *cronRecord) bool {
	if c.baseUnsure = c.baseUnsure || j.askew() > 0; c.baseUnsure {
		return true
	}
	for _, r := range c.jobs {
		if !isExecutor(r.createdBy) {
			return true
		}
	}
	return false
}

// judgeRunsDue: each run that was due started soon, unless something prevented it.
func (j *judge) judgeRunsDue(c *cronRecord) {
	unsure := j.unsure(c)
	from, until := c.checked, j.now.Add(-startsWithin)
	if !until.After(from) {
		return
	}
	c.checked = until
	t := j.timetable(c.cron)
	if t == nil || !j.mustRun(c) || t.every > 0 && unsure {
		c.owed = time.Time{}
		return
	}
	at := from.Add(-time.Duration(staggerOf(c.cron)) * time.Second)
	if t.every > 0 {
		at = c.base()
		at = at.Add(max(0, from.Sub(at).Truncate(t.every)))
	}
	for at = t.after(at); !at.IsZero() && !at.After(until); at = t.after(at) {
		start := j.startOf(c.cron, at)
		switch {
		case start.Before(from) || start.After(until) || j.passedOver(c, at, start) || c.hasRun(at) || c.forbids(start) || j.groupFull(c, start):
		case j.hinderedUntil(start, start.Add(startsWithin)).IsZero():
			j.breach("cron", c.key, c.uid, "the run of %s was not started within %s", at, startsWithin)
		default:
			c.owed = at
		}
	}
	j.judgeOwed(c)
}

// hasRun reports whether a Job of the CronJob has a scheduled time, whoever created it.
func (c *cronRecord) hasRun(at time.Time) bool {
	if c.runs[at.Unix()].job != nil {
		return true
	}
	for _, r := range c.jobs {
		if scheduled(r.job).Equal(at) {
			return true
		}
	}
	return false
}

// judgeOwed: once nothing hinders the executors, the latest of the runs that they missed starts.
func (j *judge) judgeOwed(c *cronRecord) {
	switch {
	case c.owed.IsZero():
	case c.cron.Spec.StartingDeadlineSeconds != nil || maxMissedOf(c.cron) == 0 || c.cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent || inGroup(c.cron) || !c.lastRun.Before(c.owed):
		c.owed = time.Time{}
	case j.now.After(latest(j.hinderedUntil(c.owed, j.now), j.newestStart(c)).Add(startsWithin)):
		j.breach("cron", c.key, c.uid, "the run of %s was missed and not started within %s after what had hindered it", c.owed, startsWithin)
	}
}

// mustRun reports whether the CronJob's runs must start in time.
func (j *judge) mustRun(c *cronRecord) bool {
	deadline := c.cron.Spec.StartingDeadlineSeconds
	return !c.gone && c.cron.DeletionTimestamp == nil && j.cronOurs(c) && !cronSuspended(c.cron) && readable(c.cron) && j.askew() == 0 &&
		(deadline == nil || *deadline >= int64(prompt/time.Second))
}

// forbids reports whether the CronJob allows no run beside one that was active at a time.
func (c *cronRecord) forbids(at time.Time) bool {
	if c.cron.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		return false
	}
	for _, r := range c.jobs {
		end := r.finishedAt
		if end.IsZero() {
			end = r.goneAt
		}
		if r.created.Before(at.Add(startsWithin)) && (end.IsZero() || end.After(at.Add(-startsWithin))) {
			return true
		}
	}
	return false
}
