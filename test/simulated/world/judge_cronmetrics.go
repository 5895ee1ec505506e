package world

import (
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// nextRuns are when the next runs of CronJobs are due.
type nextRuns struct {
	first  time.Time // Of those that are known; zero: there is none.
	unsure bool      // Others may be due before it.
}

// bound sets what the metric says of them. It is not there if there are none.
func (n nextRuns) bound(want bounds) {
	at := float64(n.first.Unix())
	switch {
	case n.first.IsZero() && n.unsure:
		want.most[nextRunTime] = math.Inf(1)
	case n.first.IsZero():
		want.most[nextRunTime] = -1
	case n.unsure:
		want.least[nextRunTime], want.most[nextRunTime] = 1, at
	default:
		want.least[nextRunTime], want.most[nextRunTime] = at, at
	}
}

// meterCron adds what metrics say of a CronJob.
func (j *judge) meterCron(want bounds, next *nextRuns, c *cronRecord) {
	sure := j.cronStill(c)
	if sure && (c.gone || !j.cronOurs(c)) {
		return
	}
	want.add(managedCronJobs, 1, sure)
	t := j.timetable(c.cron)
	stops := cronSuspended(c.cron) || c.cron.DeletionTimestamp != nil || t == nil
	switch {
	case sure && stops:
	case !sure || t.every > 0 && j.unsure(c) || t.clockChanges(c, j.now) || !t.asOf(c, j.now.Add(-startsWithin)).Equal(t.asOf(c, j.now)):
		next.unsure = true
		want.add(missedDeadline, 1, false)
		want.add(missedForbidden, 1, false)
	default:
		if at := t.asOf(c, j.now); !at.IsZero() && (next.first.IsZero() || at.Before(next.first)) {
			next.first = at
		}
		j.meterMissed(want, c, t)
	}
}

// cronStill reports whether nothing has happened to a CronJob and its Jobs lately, and its options can be read.
func (j *judge) cronStill(c *cronRecord) bool {
	for _, r := range c.jobs {
		if !r.gone && !j.still(r) || !j.old(r.goneAt) || !j.old(r.leftCron) {
			return false
		}
	}
	return j.old(c.created) && j.old(c.lastStimulus) && j.old(c.goneAt) && len(j.recentCrons(c)) == 1 && readable(c.cron)
}

// asOf is the first time of the schedule after another; zero if there is none.
func (t *timetable) asOf(c *cronRecord, at time.Time) time.Time {
	if base := c.base(); t.every > 0 {
		return base.Add((at.Sub(base)/t.every + 1) * t.every)
	}
	return t.after(at)
}

// clockChanges reports whether clocks of the zone change between the last run and the next one: then the library may pass
// over a time that comes after the change, depending on when it is asked (world 434).
func (t *timetable) clockChanges(c *cronRecord, now time.Time) bool {
	offset := func(at time.Time) int {
		_, seconds := at.In(t.zone).Zone()
		return seconds
	}
	return offset(c.base()) != offset(now) || offset(now) != offset(t.asOf(c, now))
}

// meterMissed: a run that is due does not start because it is too late for it, or because another one goes on.
func (j *judge) meterMissed(want bounds, c *cronRecord, t *timetable) {
	due := c.lastDue(t, j.now)
	if due.IsZero() {
		return
	}
	start, deadline := j.startOf(c.cron, due), c.cron.Spec.StartingDeadlineSeconds
	late := j.now.Sub(start) - time.Duration(valueOr(deadline, 0))*time.Second
	sure := j.meterable(c) && j.now.Sub(start) > startsWithin && (deadline == nil || late.Abs() > startsWithin)
	tooLate := deadline != nil && late > 0
	if !sure || tooLate {
		want.add(missedDeadline, 1, sure)
	}
	if !sure || !tooLate && c.cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && c.runsOn() {
		want.add(missedForbidden, 1, sure)
	}
}

// meterable reports whether nothing but the schedule, the starting deadline and the concurrency policy says which run of
// the CronJob starts next.
func (j *judge) meterable(c *cronRecord) bool {
	policy, _ := wire.PolicySpec(c.cron.Annotations)
	o := policy.GetCronJob()
	return !j.unsure(c) && maxMissedOf(c.cron) == 1 && !inGroup(c.cron) && o.GetStartJitterSeconds() == 0 && c.cron.Annotations[wire.RunNow] == "" &&
		o.GetMissedBeforeEdit() != jobpolicyv1.MissedBeforeEdit_MISSED_BEFORE_EDIT_SKIP
}

// lastDue is the latest time of the schedule, since that of the last run, at which a run is due; zero if there is none.
func (c *cronRecord) lastDue(t *timetable, now time.Time) (due time.Time) {
	for at := t.asOf(c, c.base()); !at.IsZero() && !at.After(now); at = t.asOf(c, at) {
		due = at
	}
	return due
}

// runsOn reports whether a run of the CronJob is active.
func (c *cronRecord) runsOn() bool {
	for _, r := range c.jobs {
		if !r.gone && finished(r.job) == "" && r.cron() == c.uid && isRun(r) {
			return true
		}
	}
	return false
}
