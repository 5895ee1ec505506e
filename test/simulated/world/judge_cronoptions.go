package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
)

// readable reports whether the options that a CronJob asks for can be read. A CronJob of a world
// that has some which cannot be read has them from the beginning: nobody knows the last ones.
func readable(cron *batchv1.CronJob) bool {
	_, problems := wire.PolicySpec(cron.Annotations)
	return len(problems) == 0
}

// maxMissedOf is how many missed runs of a CronJob start.
func maxMissedOf(cron *batchv1.CronJob) int {
	policy, _ := wire.PolicySpec(cron.Annotations)
	most := 1
	if o := policy.GetCronJob(); o != nil && o.MaxMissedRuns != nil {
		most = int(o.GetMaxMissedRuns())
	}
	if cron.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent {
		return min(most, 1)
	}
	return most
}

// unwanted reports whether a run that starts now was missed, and its CronJob wants no missed ones.
// One that waited for another run was not missed.
func (j *judge) unwanted(c *cronRecord, at time.Time) bool {
	return !j.cronLately(c, func(cron *batchv1.CronJob) bool {
		return maxMissedOf(cron) > 0 || cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent ||
			j.now.Sub(j.startOf(cron, at)) <= startsWithin+underWay+j.askew()
	})
}

// leavesOut reports whether a run that starts now leaves out an earlier one that its CronJob wants:
// fewer were due since then than start.
func (j *judge) leavesOut(c *cronRecord, at time.Time) bool {
	most, t := maxMissedOf(c.cron), j.timetable(c.cron)
	if most <= 1 || t == nil || t.every > 0 || c.cron.Spec.StartingDeadlineSeconds != nil || j.rivals || j.unsure(c) ||
		c.lastRun.IsZero() || !c.lastStimulus.Before(c.lastRun) || !t.after(c.base()).Before(at) {
		return false
	}
	due := 0
	for next := at; due < most && !next.IsZero() && !next.After(j.now.Add(j.fastest)); next = t.after(next) {
		due++
	}
	return due < most
}

// judgePublished: a CronJob that asks for it publishes its next run, unless it is suspended; no other one does.
// Its time is one of the schedule, and the next one unless that waits for its offset.
func (j *judge) judgePublished(c *cronRecord) {
	policy, _ := wire.PolicySpec(c.cron.Annotations)
	text, is := c.cron.Annotations[wire.NextScheduleTime]
	asked := policy.GetCronJob().GetPublishNextScheduleTime() && !cronSuspended(c.cron)
	if asked != is && j.seenByRightClocks() && readable(c.cron) {
		j.breach("cron", c.key, c.uid, "the next run is published: %t (%s), want %t", is, text, asked)
	}
}

// judgePublishes checks what an executor publishes when it writes the status of a CronJob: that the next run is
// later than the last one, and one of the schedule.
func (j *judge) judgePublishes(c *cronRecord, by string) {
	at, err := time.Parse(time.RFC3339, c.cron.Annotations[wire.NextScheduleTime])
	t, last := j.timetable(c.cron), c.cron.Status.LastScheduleTime
	if err != nil || t == nil || j.askew() > 0 || t.every > 0 && j.unsure(c) {
		return
	}
	if last != nil && !at.After(last.Time) {
		j.breach("cron", c.key, c.uid, "%s published the next run of %s, and the last one was that of %s", by, at, last)
	}
	if t.every == 0 && !j.onSchedule(c, at) {
		j.breach("cron", c.key, c.uid, "%s published the next run of %s, and the schedule has no such time", by, at)
	}
}
