package world

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A cronReader reads a journal. Whenever a CronJob has been at rest for a while, it asks
// explain when the next run starts, and compares the answer with the next run.
type cronReader struct {
	plan  *plan
	quiet time.Duration

	crons map[types.UID]*restingCron
	jobs  map[types.UID]*batchv1.Job

	wrong []string
	tally map[string]int
	seen  map[string]int // facts that a report must not contradict
}

// A restingCron is a CronJob, and what explain said of it when it came to rest.
type restingCron struct {
	cron    *batchv1.CronJob
	touched time.Time // When the CronJob or one of its Jobs was written last.
	said    *explain.CronReport
	saidAt  time.Time
}

func newCronReader(p *plan) *cronReader {
	return &cronReader{plan: p, quiet: p.calmLag(), crons: map[types.UID]*restingCron{}, jobs: map[types.UID]*batchv1.Job{}, tally: map[string]int{}, seen: map[string]int{}}
}

func (r *cronReader) read(j *journal) {
	for i := range j.lines {
		if w := j.lines[i].write; w != nil {
			r.explainUntil(w.Time)
			r.compare(w)
			r.note(w)
		}
	}
	end := j.lines[len(j.lines)-1].at
	r.explainUntil(end)
	for _, uid := range sortedUIDs(r.crons) {
		r.passed(r.crons[uid], end)
	}
}

// explainUntil explains the CronJobs that have been at rest for a while by then.
func (r *cronReader) explainUntil(now time.Time) {
	for _, uid := range sortedUIDs(r.crons) {
		c := r.crons[uid]
		if at := c.touched.Add(r.quiet); c.said == nil && at.Before(now) && r.managed(c.cron) {
			r.explain(c, at)
		}
	}
}

// managed reports whether the executors run the CronJob, and when is for itself to say: the next run of one of a group may
// wait for others.
func (r *cronReader) managed(cron *batchv1.CronJob) bool {
	if inGroup(cron) {
		return false
	}
	manager, named := cron.Annotations[wire.CronJobManagedBy]
	return (named && manager == managedByUs) || (!named && r.plan.executor.replace)
}

// explain asks explain what it would tell a user.
func (r *cronReader) explain(c *restingCron, now time.Time) {
	f := explain.CronFacts{CronJob: c.cron, Now: now, Zone: r.plan.executor.zone}
	for _, uid := range sortedUIDs(r.jobs) {
		if job := r.jobs[uid]; job.Namespace == c.cron.Namespace {
			f.Jobs = append(f.Jobs, *job)
		}
	}
	report, err := explain.ExplainCronJob(f, cronjob.Decide)
	if err != nil {
		r.wrong = append(r.wrong, fmt.Sprintf("%s of %s: %v", now, c.cron.Name, err))
		return
	}
	c.said, c.saidAt = report, now
	for _, text := range cronContradictions(f, report, r.seen) {
		r.wrongly(c, now, "%s", text)
	}
	r.tally[string(report.State)]++
}

// compare compares a run that an executor starts with what was said.
func (r *cronReader) compare(w *apiserver.Write) {
	job, ok := w.New.(*batchv1.Job)
	if !ok || w.Old != nil || !isExecutor(w.By) {
		return
	}
	c := r.crons[cronOf(job)]
	if c == nil || c.said == nil {
		return
	}
	due, at := scheduled(job), nextRun(c.said)
	switch {
	case c.said.State != explain.Scheduled && c.said.State != explain.Waiting && c.said.State != explain.Missed && c.said.State != explain.Blocked:
		r.wrongly(c, w.Time, "no run was told, and that of %s started", due)
	case at.IsZero():
		r.wrongly(c, w.Time, "no further run was told, and that of %s started", due)
	case c.said.State == explain.Scheduled && (!due.Equal(at) || w.Time.Before(at)):
		r.wrongly(c, w.Time, "the run of %s was told, and that of %s started", at, due)
	default:
		r.tally["run as told"]++
	}
}

// nextRun is the next run that a report names; zero if it names none.
func nextRun(report *explain.CronReport) time.Time {
	for _, next := range report.Next {
		if next.Change == "" {
			return next.At
		}
	}
	return time.Time{}
}

// startOf is when the next run starts that a report names; zero if it names none.
func startOf(report *explain.CronReport) time.Time {
	for _, next := range report.Next {
		switch {
		case next.Starts != nil:
			return *next.Starts
		case next.Change == "":
			return next.At
		}
	}
	return time.Time{}
}

// passed checks what was said against the fact that no run was started until now. A run
// that must wait for another one need not start.
func (r *cronReader) passed(c *restingCron, now time.Time) {
	if c.said == nil || c.said.State != explain.Scheduled {
		return
	}
	at := nextRun(c.said)
	jitter := hasJitter(c.cron)
	if !at.IsZero() && startOf(c.said).Add(r.quiet).Before(now) && !jitter && (len(c.said.Active) == 0 || c.cron.Spec.ConcurrencyPolicy == batchv1.AllowConcurrent) {
		r.wrongly(c, now, "the run of %s was told, and did not start", at)
		return
	}
	r.tally["no run before"]++
}

func (r *cronReader) wrongly(c *restingCron, now time.Time, format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf("cron job %s, at rest at %s, %s later: %s\n    %s: %s", c.cron.Name, stamp(c.saidAt.Sub(r.plan.begins)), now.Sub(c.saidAt),
		fmt.Sprintf(format, args...), c.said.State, c.said.Headline))
}

// note remembers a write. Whatever touches a CronJob or its Jobs ends its rest.
func (r *cronReader) note(w *apiserver.Write) {
	switch w.Resource {
	case "cronjobs":
		if cron, ok := w.New.(*batchv1.CronJob); ok {
			if r.crons[cron.UID] == nil {
				r.crons[cron.UID] = &restingCron{}
			}
			r.crons[cron.UID].cron = cron
			r.touch(cron.UID, w)
		} else {
			delete(r.crons, w.UID)
		}
	case "jobs":
		for _, obj := range []any{w.Old, w.New} {
			if job, ok := obj.(*batchv1.Job); ok && cronOf(job) != "" {
				r.touch(cronOf(job), w)
			}
		}
		keep(r.jobs, w.UID, *w)
	}
}

func (r *cronReader) touch(uid types.UID, w *apiserver.Write) {
	c := r.crons[uid]
	if c == nil {
		return
	}
	if job, ok := w.New.(*batchv1.Job); !ok || w.Old != nil || cronOf(job) != uid {
		r.passed(c, w.Time) // It is no run that starts.
	}
	c.touched, c.said = w.Time, nil
}
