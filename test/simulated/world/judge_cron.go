package world

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// managedByUs is the value that hands a CronJob or Job to the executors.
const managedByUs = "jobpolicy.dev/executor"

// A cronRecord is what happened to one CronJob.
type cronRecord struct {
	uid     types.UID
	key     types.NamespacedName
	cron    *batchv1.CronJob
	earlier []earlierCron
	// valid are the options that it had.
	valid   validPolicies
	gone    bool
	goneAt  time.Time
	created time.Time
	// jobs are the Jobs that it controls or controlled; runs are the runs that were
	// started, by their scheduled times.
	jobs         map[types.UID]*jobRecord
	runs         map[int64]started
	lastStimulus time.Time
	lastRun      time.Time
	// told is how often an executor told of the start of a run.
	told map[startEvent]int
	// checked is the time up to which the runs that were due have been checked.
	checked time.Time
	// owed is the latest run that was due while something hindered the executors, and that must
	// start after it; zero if there is none.
	owed time.Time
	// baseUnsure: clocks were wrong since it was created.
	baseUnsure bool
}

// A startEvent tells that an executor has created a Job.
type startEvent struct{ by, job string }

// A run that was started, and who started it.
type started struct {
	job *jobRecord
	by  string
}

type earlierCron struct {
	cron  *batchv1.CronJob
	until time.Time
}

func (j *judge) cronWritten(w apiserver.Write, ours bool) {
	next, _ := w.New.(*batchv1.CronJob)
	c := j.crons[w.UID]
	if c == nil {
		if next != nil {
			c = &cronRecord{
				uid: w.UID, key: w.Key, cron: next, created: w.Time, lastStimulus: w.Time,
				jobs: map[types.UID]*jobRecord{}, runs: map[int64]started{}, told: map[startEvent]int{}, checked: w.Time.Add(startsWithin),
			}
			c.valid.had(next.Annotations)
			j.crons[w.UID] = c
		}
		return
	}
	if ours && !j.cronOurs(c) {
		j.breach("I9", c.key, c.uid, "%s wrote a CronJob that somebody else runs, and must leave it alone", w.By)
	}
	j.judgeRunsDue(c)
	if !ours {
		c.lastStimulus, c.checked, c.owed = w.Time, latest(c.checked, w.Time.Add(startsWithin)), time.Time{}
	}
	if next == nil {
		c.gone, c.goneAt = true, w.Time
		return
	}
	c.earlier = append(c.earlier, earlierCron{c.cron, w.Time})
	for len(c.earlier) > 1 && j.old(c.earlier[0].until) {
		c.earlier = c.earlier[1:]
	}
	c.cron = next
	c.valid.had(next.Annotations)
	if ours {
		j.judgePublishes(c, w.By)
		j.judgeLastValidOfCron(w, c)
	}
}

// recentCrons are the versions that an executor may use.
func (j *judge) recentCrons(c *cronRecord) []*batchv1.CronJob {
	versions := []*batchv1.CronJob{c.cron}
	for _, e := range c.earlier {
		if !j.old(e.until) {
			versions = append(versions, e.cron)
		}
	}
	return versions
}

func (j *judge) cronLately(c *cronRecord, so func(*batchv1.CronJob) bool) bool {
	return slices.ContainsFunc(j.recentCrons(c), so)
}

// cronOurs reports whether the executors run a CronJob.
func (j *judge) cronOurs(c *cronRecord) bool {
	return j.cronLately(c, func(cron *batchv1.CronJob) bool {
		manager, named := cron.Annotations[wire.CronJobManagedBy]
		return (!named || manager == managedByUs) && (named || j.replacesBuiltin())
	})
}

// cronSuspended reports whether the CronJob's user wants it suspended.
func cronSuspended(cron *batchv1.CronJob) bool {
	if cron.Annotations[wire.CronJobManagedBy] == managedByUs {
		text, ok := cron.Annotations[wire.CronJobSuspend]
		return ok && text != "false"
	}
	return valueOr(cron.Spec.Suspend, false)
}

// cron is the UID of the CronJob that controls the Job; empty if none does.
func (r *jobRecord) cron() types.UID { return cronOf(r.job) }

func cronOf(job *batchv1.Job) types.UID {
	ref := metav1.GetControllerOfNoCopy(job)
	if ref == nil || ref.Kind != "CronJob" {
		return ""
	}
	return referredUID(job, ref)
}

// scheduled is the time for which a Job was started; zero if it names none.
func scheduled(job *batchv1.Job) time.Time {
	at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// cronJobStarted handles a new Job, and checks it against its CronJob if an executor
// created it.
func (j *judge) cronJobStarted(w apiserver.Write, ours bool, r *jobRecord) {
	c := j.crons[r.cron()]
	if c == nil {
		if ours {
			j.breach("I9", r.key, r.uid, "%s created a Job that no CronJob asks for", w.By)
		}
		return
	}
	at := scheduled(r.job)
	if ours {
		j.judgeRunsDue(c)
		j.judgeRun(w, c, r, at)
		if !j.terse {
			j.judgeNewRun(w, c, r)
		}
	}
	c.jobs[r.uid] = r
	if ours && !at.IsZero() {
		c.runs[at.Unix()] = started{r, w.By}
		c.lastRun = latest(c.lastRun, at)
	}
}

// judgeRun checks a run against its CronJob: it is due, starts once, and may run beside
// the others.
func (j *judge) judgeRun(w apiserver.Write, c *cronRecord, r *jobRecord, at time.Time) {
	runNow := j.cronLately(c, func(cron *batchv1.CronJob) bool { return cron.Annotations[wire.RunNow] != "" })
	switch {
	case !j.cronOurs(c):
		j.breach("I9", r.key, r.uid, "%s started a run of a CronJob that somebody else runs", w.By)
	case (c.gone && j.old(c.goneAt)) || (c.cron.DeletionTimestamp != nil && j.old(c.cron.DeletionTimestamp.Time)):
		j.breach("cron", r.key, r.uid, "%s started a run of CronJob %s, which is deleted", w.By, c.key.Name)
	case !j.cronLately(c, readable):
		j.breach("cron", r.key, r.uid, "%s started a run of CronJob %s, whose options cannot be read", w.By, c.key.Name)
	case runNow:
	case at.IsZero():
		j.breach("cron", r.key, r.uid, "%s started a run that does not say for which scheduled time, and nobody asked for one now", w.By)
	case !j.cronLately(c, func(cron *batchv1.CronJob) bool { return !cronSuspended(cron) }):
		j.breach("cron", r.key, r.uid, "%s started a run of CronJob %s, which is suspended", w.By, c.key.Name)
	case at.After(j.now.Add(j.fastest)):
		j.breach("cron", r.key, r.uid, "%s started the run of %s at %s: before its time", w.By, at, j.now)
	case !j.cronLately(c, func(cron *batchv1.CronJob) bool { return !j.startOf(cron, at).After(j.now.Add(j.fastest)) }):
		j.breach("cron", r.key, r.uid, "%s started the run of %s at %s: before the offset of CronJob %s", w.By, at, j.now, c.key.Name)
	case !j.onSchedule(c, at):
		j.breach("cron", r.key, r.uid, "%s started the run of %s, and the schedule of CronJob %s has no such time", w.By, at, c.key.Name)
	case j.tooLate(c, at):
		j.breach("cron", r.key, r.uid, "%s started the run of %s at %s: later than the starting deadline allows", w.By, at, j.now)
	case j.unwanted(c, at):
		j.breach("cron", r.key, r.uid, "%s started the run of %s at %s: it was missed, and no missed run is wanted", w.By, at, j.now)
	case j.leavesOut(c, at):
		j.breach("cron", r.key, r.uid, "%s started the run of %s, and left out an earlier one after %s; as many as %d missed ones are wanted", w.By, at, c.base(), maxMissedOf(c.cron))
	case j.askew() > 0: // A clock that is set back may start a run again.
	case c.runs[at.Unix()].job != nil && j.remembered(w, c, at):
		j.breach("cron", r.key, r.uid, "%s started the run of %s a second time; the first was Job %s (UID %s)", w.By, at, c.runs[at.Unix()].job.key.Name, c.runs[at.Unix()].job.uid)
	case at.Before(c.lastRun) && j.remembered(w, c, c.lastRun):
		j.breach("cron", r.key, r.uid, "%s started the run of %s after that of %s, and runs that were passed over are lost", w.By, at, c.lastRun)
	}
	j.judgeConcurrency(w, c, r)
	j.judgeGroup(w, c, r)
}

// underWay is how long after the decision the creation of a run may reach the API server.
const underWay = 75 * time.Second

// longestLook limits how far back the judge looks for runs that start late.
const longestLook = 48 * time.Hour

// tooLate reports whether a run was started after its starting deadline.
func (j *judge) tooLate(c *cronRecord, at time.Time) bool {
	return !j.cronLately(c, func(cron *batchv1.CronJob) bool {
		seconds := cron.Spec.StartingDeadlineSeconds
		if seconds == nil || hasJitter(cron) || *seconds > int64(longestLook/time.Second) {
			return true
		}
		return j.now.Sub(j.startOf(cron, at)) <= time.Duration(*seconds)*time.Second+underWay+j.askew()
	})
}

func hasJitter(cron *batchv1.CronJob) bool {
	policy, _ := wire.PolicySpec(cron.Annotations)
	return policy.GetCronJob().GetStartJitterSeconds() > 0
}

// remembered reports whether an executor must know that a run was started: it started
// the run itself, the run's Job exists, or the CronJob's status names it. If two executors are
// active at once, the creation by this one may have been under way since before that. It need not
// know a run that is gone, if the answer to its creation was lost and the watch shows Jobs late.
func (j *judge) remembered(w apiserver.Write, c *cronRecord, at time.Time) bool {
	run := c.runs[at.Unix()]
	if j.rivals && run.by != w.By && j.now.Sub(run.job.created) <= underWay {
		return false
	}
	told := c.cron.Status.LastScheduleTime
	_, lost := j.writer(w.By).unanswered[types.NamespacedName{Namespace: c.key.Namespace}]
	unseen := lost && j.lateJobs && run.job.gone && !j.knows(w.By, run.job.goneAt)
	return (run.by == w.By && !unseen) || !run.job.gone || (told != nil && !told.Time.Before(at))
}

// judgeConcurrency: with Forbid and Replace, a run starts only when no other run is
// active that the executor can know of.
func (j *judge) judgeConcurrency(w apiserver.Write, c *cronRecord, r *jobRecord) {
	if j.cronLately(c, func(cron *batchv1.CronJob) bool { return cron.Spec.ConcurrencyPolicy == batchv1.AllowConcurrent }) {
		return
	}
	for _, uid := range sortedUIDs(c.jobs) {
		other := c.jobs[uid]
		if other.gone || finished(other.job) != "" || other.cron() != c.uid || !isRun(other) || other.job.DeletionTimestamp != nil {
			continue
		}
		if other.createdBy != w.By && !j.old(other.created) {
			continue
		}
		j.breach("cron", r.key, r.uid, "%s started a run while Job %s was active, and the concurrency policy is %s", w.By, other.key.Name, c.cron.Spec.ConcurrencyPolicy)
	}
}

// isRun distinguishes a CronJob's runs from Jobs that somebody created from its
// template.
func isRun(r *jobRecord) bool {
	return !scheduled(r.job).IsZero() || r.job.Annotations[wire.RunNow] != ""
}

// cronDeletes reports whether a CronJob may have its Job deleted: by its history
// limits, or to make room for another run. The Job may have lost its CronJob a moment ago.
func (j *judge) cronDeletes(_ apiserver.Write, r *jobRecord) bool {
	c := j.crons[r.cron()]
	if c == nil && !j.old(r.leftCron) {
		c = j.crons[r.formerCron]
	}
	if c == nil {
		return false
	}
	outcome := finished(r.job)
	replaces := j.cronLately(c, func(cron *batchv1.CronJob) bool { return cron.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent })
	if outcome == "" || (replaces && !j.old(r.finishedAt)) {
		return replaces
	}
	kept := 0
	for _, other := range c.jobs {
		// The executor may not know yet that a Job is being deleted, or gone.
		deleted := (other.gone && j.old(other.goneAt)) || (other.job.DeletionTimestamp != nil && j.old(other.job.DeletionTimestamp.Time))
		if !deleted && finished(other.job) == outcome {
			kept++
		}
	}
	return j.cronLately(c, func(cron *batchv1.CronJob) bool { return kept > historyLimit(cron, outcome) })
}

func historyLimit(cron *batchv1.CronJob, outcome batchv1.JobConditionType) int {
	if outcome == batchv1.JobComplete {
		return int(valueOr(cron.Spec.SuccessfulJobsHistoryLimit, 3))
	}
	return int(valueOr(cron.Spec.FailedJobsHistoryLimit, 1))
}
