package playground

import (
	"cmp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/services/internal/cronruns"
)

const (
	// months is how many months the calendar has, so that it has every clock change of a
	// year.
	months = 12
	// past is how many of these months may be before the present one, for missed runs.
	past = 2
	// listed is how many runs are listed one by one.
	listed = 12
)

// A Calendar says when a CronJob runs.
type Calendar struct {
	Schedule string          `json:"schedule"`
	Zone     string          `json:"zone"`
	Suspend  bool            `json:"suspend"`
	Next     []cronruns.Time `json:"next"`
	// Missed says what became of missed runs. Empty: there are none.
	Missed string  `json:"missed,omitempty"`
	Months []Month `json:"months"`
	// NextChange is the day before the next change of the clock that is more than two days
	// away. Absent: there is none within two years.
	NextChange string `json:"nextChange,omitempty"`
}

// A Month has its days in order.
type Month struct {
	Title string `json:"title"`
	// First is the weekday of the first day; 0 is Monday.
	First int   `json:"first"`
	Days  []Day `json:"days"`
}

// A Day has the numbers of its coming runs and of its missed runs. Numbers above
// schedule.CountLimit, which is 100, are estimates.
type Day struct {
	Runs   int64 `json:"runs"`
	Missed int64 `json:"missed"`
	// Change says how the clock changes on this day.
	Change string `json:"change,omitempty"`
	Today  bool   `json:"today,omitempty"`
}

func (s State) calendar(cron *batchv1.CronJob) (*Calendar, *Problem) {
	now, lastRun, bad := s.times()
	if bad != nil {
		return nil, bad
	}
	plan := cronruns.PlanOf(cron, s.Zone)
	reader, err := cronruns.Read(plan)
	if err != nil {
		if cron.Spec.TimeZone == nil && s.Zone != "" {
			return nil, problem("zone", err.Error())
		}
		return nil, problem("manifest", err.Error())
	}
	c := &Calendar{
		Schedule: plan.Schedule, Zone: cmp.Or(reader.Zone().String(), "UTC"),
		Suspend: cronruns.Suspended(cron),
	}
	from := reader.From(now)
	if !lastRun.IsZero() {
		from = reader.From(lastRun)
	}
	c.Next = from.Next(now, listed)
	seen := cron.DeepCopy()
	seen.CreationTimestamp, seen.Status = metav1.Time{}, batchv1.CronJobStatus{}
	if !lastRun.IsZero() {
		seen.Status.LastScheduleTime = &metav1.Time{Time: lastRun}
	}
	if m := cronruns.MissedOf(seen, reader, now); m != nil {
		c.Missed = m.Text(seen, now)
	}
	c.Months = calendarMonths(from, lastRun, now)
	if changes := reader.Changes(now.AddDate(0, 0, 2), now.AddDate(2, 0, 0)); len(changes) > 0 {
		c.NextChange = changes[0].At.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	return c, nil
}

// calendarMonths are the months from now on, and those before it that have missed
// runs. Without a last run, nothing is missed.
func calendarMonths(reader *cronruns.Reader, lastRun, now time.Time) []Month {
	now = now.In(reader.Zone())
	if lastRun.IsZero() {
		lastRun = now
	}
	// Months and days are only dates here, without a zone.
	first := cronruns.Month(now).AddDate(0, -past, 0)
	if begin := cronruns.Month(lastRun.In(reader.Zone())); begin.After(first) {
		first = begin
	}
	changes := map[string]string{}
	for _, c := range reader.Changes(reader.StartOfDay(first.Date()), reader.StartOfDay(first.AddDate(0, months, 0).Date())) {
		changes[c.At.Format(time.DateOnly)] = c.Change
	}
	var out []Month
	for i := range months {
		begin := first.AddDate(0, i, 0)
		m := Month{Title: begin.Format("January 2006"), First: (int(begin.Weekday()) + 6) % 7}
		for day := begin; day.Month() == begin.Month(); day = day.AddDate(0, 0, 1) {
			from, until := reader.StartOfDay(day.Date()).Add(-time.Second), reader.StartOfDay(day.AddDate(0, 0, 1).Date()).Add(-time.Second)
			m.Days = append(m.Days, Day{
				Runs: reader.Count(later(from, now), until), Missed: reader.Count(later(from, lastRun), earlier(until, now)),
				Change: changes[day.Format(time.DateOnly)], Today: now.After(from) && !now.After(until),
			})
		}
		out = append(out, m)
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
