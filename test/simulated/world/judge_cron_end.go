package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
)

// judgeCronEnd compares a CronJob at rest with its Jobs.
func (j *judge) judgeCronEnd(c *cronRecord) {
	if c.gone || c.cron.DeletionTimestamp != nil || !j.cronOurs(c) {
		return
	}
	j.judgeRunsDue(c)
	j.judgeGroupEnd(c)
	last := c.lastStimulus
	for _, r := range c.jobs {
		last = latest(last, latest(r.lastStimulus, r.finishedAt))
	}
	if !j.settled(last) {
		return
	}
	j.judgeActive(c)
	j.judgeLastSuccess(c)
	j.judgeHistory(c)
	j.judgePublished(c)
}

// looksAgain is how long after a reconcile an executor looks at a CronJob again if nothing happens,
// and a bit more. So it notices a clock that was set.
const looksAgain = 11 * time.Minute

// seenByRightClocks reports whether executors have looked at every CronJob since their clocks are
// right.
func (j *judge) seenByRightClocks() bool {
	return j.askew() == 0 || !j.rightSince.IsZero() && j.now.Sub(j.rightSince) > looksAgain
}

// judgeActive: status.active lists the runs that are not finished, and
// lastScheduleTime is not before that of any run.
func (j *judge) judgeActive(c *cronRecord) {
	listed := map[types.UID]bool{}
	for _, ref := range c.cron.Status.Active {
		r := c.jobs[ref.UID]
		if r == nil || r.gone || finished(r.job) != "" || r.cron() != c.uid || !j.terse && wrongActive(ref, r) {
			j.breach("cron", c.key, c.uid, "status.active lists Job %s, which is not an active one of the CronJob", ref.Name)
		}
		listed[ref.UID] = true
	}
	var newest time.Time
	for _, uid := range sortedUIDs(c.jobs) {
		r := c.jobs[uid]
		if r.gone || r.cron() != c.uid {
			continue
		}
		if !listed[uid] && finished(r.job) == "" && isRun(r) {
			j.breach("cron", c.key, c.uid, "status.active does not list Job %s, which is active", r.key.Name)
		}
		if at := scheduled(r.job); !at.After(r.created) {
			newest = latest(newest, at)
		}
	}
	if at := c.cron.Status.LastScheduleTime; !newest.IsZero() && (at == nil || at.Time.Before(newest)) && j.seenByRightClocks() {
		j.breach("cron", c.key, c.uid, "status.lastScheduleTime is %v, and there is a run of %s", at, newest)
	}
	if at := c.cron.Status.LastScheduleTime; at != nil && at.After(j.now.Add(j.fastest)) {
		j.breach("cron", c.key, c.uid, "status.lastScheduleTime is %v, which is yet to come", at)
	}
}

// judgeHistory: no more finished Jobs are kept than the limits allow. A Job with a
// scheduled time in the future, because a clock was wrong, stays until that time.
func (j *judge) judgeHistory(c *cronRecord) {
	kept := map[batchv1.JobConditionType]int{}
	for _, r := range c.jobs {
		if !r.gone && r.job.DeletionTimestamp == nil && r.cron() == c.uid && !scheduled(r.job).After(j.now) {
			kept[finished(r.job)]++
		}
	}
	for _, outcome := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if outcome == batchv1.JobFailed && !readable(c.cron) {
			continue // They may count for an option.
		}
		if limit := historyLimit(c.cron, outcome); kept[outcome] > limit {
			j.breach("cron", c.key, c.uid, "%d Jobs that are %s are kept, and the history limit is %d", kept[outcome], outcome, limit)
		}
	}
}
