package cronjob

import (
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// onTimeSeconds is how late a run may start that is not missed.
const onTimeSeconds = 60

// maxMissed is how many missed runs start.
func (s *snapshot) maxMissed() int {
	return MaxMissedRuns(s.options, s.spec.GetConcurrencyPolicy() == jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REPLACE)
}

// MaxMissedRuns is how many missed runs of a CronJob start: one, unless the options say otherwise. With
// concurrencyPolicy Replace it is one at most, as one would end the other.
func MaxMissedRuns(o *jobpolicyv1.CronJobOptions, replace bool) int {
	switch {
	case o == nil || o.MaxMissedRuns == nil:
		return 1
	case replace:
		return min(1, int(o.GetMaxMissedRuns()))
	}
	return int(o.GetMaxMissedRuns())
}

// catchUp chooses the run to start: of the newest due times, as many as may start, the oldest one that
// still can. Each start moves the time after which runs are due, so the others follow, also after
// a restart. d must be the latest due time, with its delay.
func (s *snapshot) catchUp(d due) due {
	waiting := []time.Time{d.at} // the newest first
	if d.times > 1 {
		waiting = append(waiting, s.missedBefore(d, s.maxMissed()-1)...)
	}
	waiting = s.cutTaken(waiting)
	for i := len(waiting) - 1; i > 0; i-- {
		older := d
		older.at, older.later = waiting[i], int64(i)
		older = s.delayed(older, waiting[i-1])
		if !s.tooLate(older) && !s.taken(s.scheduledName(older.at)) {
			return older
		}
	}
	return d
}

// cutTaken leaves out the times before the newest one whose name is taken, if the request has as many such
// names as it may: the caller may know of others, and runs are tried in order of their times.
func (s *snapshot) cutTaken(waiting []time.Time) []time.Time {
	newest := slices.IndexFunc(waiting, func(at time.Time) bool { return s.taken(s.scheduledName(at)) })
	if newest < 0 || len(s.req.GetNamesTaken()) < maxNamesTaken {
		return waiting
	}
	return waiting[:newest+1]
}

// waitedUntil is until when the run that is due could not start because others were active: its start time if
// none was. The Jobs of these runs must still exist.
func (f facts) waitedUntil() time.Time {
	until := f.due.start
	if f.spec.GetConcurrencyPolicy() != jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_FORBID {
		return until
	}
	for _, r := range f.spans() {
		if r.from.Sub(until) <= onTimeSeconds*time.Second && r.to.After(until) {
			until = r.to
		}
	}
	return until
}

// A span is when a run was active; one that still is, until now.
type span struct{ from, to time.Time }

// spans are those of the runs in the order in which they began. A run began at the scheduled time
// at the earliest.
func (f facts) spans() []span {
	var spans []span
	for _, job := range f.jobs {
		r := span{from: job.GetStartTime().AsTime(), to: f.now}
		if job.GetScheduledTime() != nil {
			r.from = job.GetScheduledTime().AsTime()
		}
		if job.GetOutcome() != jobpolicyv1.JobOutcome_JOB_OUTCOME_ACTIVE {
			r.to = job.GetFinishTime().AsTime()
		}
		if isRun(job) {
			spans = append(spans, r)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	return spans
}

func missedRun(f facts) answer {
	if most := f.maxMissed(); most > 0 {
		return no("missed runs that start: %d at most", most)
	}
	since := f.waitedUntil()
	late := f.now.Unix() - since.Unix()
	if late <= onTimeSeconds {
		return no("late by %ds; after %ds the run counts as missed", max(0, late), onTimeSeconds)
	}
	a := decided("late by %ds, and no missed run starts (cronJob.maxMissedRuns is 0)", late)
	a.skipped = jobpolicyv1.SkipReason_SKIP_REASON_MISSED
	return f.tellMissed(a, since.Add((onTimeSeconds+1)*time.Second))
}

// tellMissed adds the event that the due run was missed, if that is so since recently.
func (f facts) tellMissed(a answer, since time.Time) answer {
	if !f.isRecent(since) {
		return a
	}
	return a.with(warning(eventMissSchedule, "Missed scheduled time to start a job: %s", f.due.at.Format(time.RFC1123Z)))
}
