package cronruns

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/executor/wire"
)

// Missed are runs that did not start.
type Missed struct {
	Count int64     `json:"count"`
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	// starts is when the last one starts; zero: when it is due.
	starts time.Time
}

// LastRun is the last run of a CronJob that was started, or its creation; zero if it is not in a
// cluster.
func LastRun(cron *batchv1.CronJob) time.Time {
	if last := cron.Status.LastScheduleTime; last != nil && last.After(cron.CreationTimestamp.Time) {
		return last.Time
	}
	return cron.CreationTimestamp.Time
}

// MissedOf are the runs since the last one that was started, up to now; nil: none, or
// the CronJob is not in a cluster.
func MissedOf(cron *batchv1.CronJob, reader *Reader, now time.Time) *Missed {
	since := LastRun(cron)
	if since.IsZero() {
		return nil
	}
	n := reader.Count(since, now)
	if n == 0 {
		return nil
	}
	last := reader.Latest(since, now)
	return &Missed{Count: n, Since: since.UTC(), Last: last, starts: reader.Start(last)}
}

// HandedOver reports whether an annotation names a controller, and the CronJob is suspended
// for the built-in one.
func HandedOver(cron *batchv1.CronJob) bool {
	return cron.Annotations[wire.CronJobManagedBy] != "" && cron.Spec.Suspend != nil && *cron.Spec.Suspend
}

// Suspended reports whether the controller that runs a CronJob starts no runs of it.
func Suspended(cron *batchv1.CronJob) bool {
	return wire.CronJobSuspended(cron, HandedOver(cron))
}

// Text says whether the missed runs still start.
func (m *Missed) Text(cron *batchv1.CronJob, now time.Time) string {
	about := ""
	if m.Count > schedule.CountLimit {
		about = "about "
	}
	text := fmt.Sprintf("missed since %s: %s%d, the last at %s", m.Since.Format(time.RFC3339), about, m.Count, m.Last.Format(time.RFC3339))
	deadline, due := cron.Spec.StartingDeadlineSeconds, m.Last
	if m.starts.After(due) {
		due = m.starts
	}
	most := PlanOf(cron, "").MissedRuns
	switch {
	case most == 0 && cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && !Suspended(cron):
		return text + "; that one can still start only if it waits for an active run: cronJob.maxMissedRuns is 0"
	case most == 0:
		return text + "; none of them starts: cronJob.maxMissedRuns is 0"
	case deadline != nil && now.Sub(due).Seconds() > float64(*deadline):
		return text + fmt.Sprintf("; none of them starts any more: startingDeadlineSeconds is %d", *deadline)
	case most > 1:
		return text + "; " + lastOnes(min(int64(most), m.Count), cron)
	case Suspended(cron) && deadline == nil:
		return text + "; when the CronJob is resumed, that one starts at once: without startingDeadlineSeconds nothing is too late"
	case due.After(now) && !Suspended(cron):
		return text + "; that one starts at " + due.UTC().Format(time.RFC3339)
	}
	return text + "; only that one can still start, the others never do"
}

// lastOnes says that the last n missed runs start, and when.
func lastOnes(n int64, cron *batchv1.CronJob) string {
	text := fmt.Sprintf("the last %d of them still start", n)
	if Suspended(cron) {
		text = fmt.Sprintf("when the CronJob is resumed, the last %d of them start", n)
	}
	if cron.Spec.StartingDeadlineSeconds != nil {
		text += ", unless startingDeadlineSeconds rules them out"
	}
	return text
}

// OnResume says which of the missed runs start when the CronJob is resumed. Empty: none of them.
func (p Plan) OnResume() string {
	switch {
	case p.MissedRuns == 0:
		return ""
	case p.MissedRuns == 1:
		return "the latest missed run starts"
	}
	return fmt.Sprintf("the latest %d missed runs start in order (cronJob.maxMissedRuns)", p.MissedRuns)
}

// AfterActive says which of the runs that come due while another one is active start afterwards, with
// concurrencyPolicy Forbid.
func (p Plan) AfterActive() string {
	switch {
	case p.MissedRuns == 0:
		return "at most the latest starts afterwards, and none that was missed for another reason (cronJob.maxMissedRuns is 0)"
	case p.MissedRuns == 1:
		return "at most the latest starts afterwards"
	}
	return fmt.Sprintf("at most the latest %d start afterwards (cronJob.maxMissedRuns)", p.MissedRuns)
}
