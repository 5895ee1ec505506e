package views

import (
	"encoding/json"
	"time"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/services/internal/cronruns"
)

const (
	// calendarDays is how many days the calendar has.
	calendarDays = 7
	// runsShown is how many runs of a day are shown with their times.
	runsShown = 3
)

// calendarRow is one row of the calendar: what the table of CronJobs says, and the days.
type calendarRow struct {
	cronJobJSON
	// Options are those of a JobPolicy in one line; empty: the CronJob has none.
	Options string    `json:"options,omitempty"`
	Days    []dayJSON `json:"days,omitempty"`
}

// A dayJSON is a day on the clock of the CronJob.
type dayJSON struct {
	Runs int64 `json:"runs"`
	// First are the first runs and the changes of the clock among them.
	First []runJSON `json:"first,omitempty"`
}

type runJSON struct {
	At     string `json:"at"`
	Note   string `json:"note,omitempty"`
	Change bool   `json:"change,omitempty"`
}

// daysFrom are the dates of the calendar, in UTC.
func daysFrom(now time.Time) []string {
	days := make([]string, calendarDays)
	for i := range days {
		days[i] = now.UTC().AddDate(0, 0, i).Format(time.DateOnly)
	}
	return days
}

func cronRow(o executor.CronJobObservation, now time.Time) json.RawMessage {
	row := calendarRow{cronJobJSON: cronJobOf(o)}
	if list := explain.OptionsOf(o.OptionsFrom, o.Options, !o.OptionsUnread); list != nil && (o.Options != nil || o.OptionsUnread) {
		row.Options = list.String() // Before, the executor has not read them.
	}
	reader, err := cronruns.Read(cronruns.PlanOf(o.CronJob, o.Zone))
	if err != nil || o.Suspended || o.CronJob.DeletionTimestamp != nil {
		row.Next = nil
		return encoded(row) // the reason says why
	}
	if row.Next != nil {
		reader = reader.From(before(reader, *row.Next))
	}
	first := now.UTC()
	for i := range calendarDays {
		date := first.AddDate(0, 0, i)
		runs, times := reader.Day(date.Year(), date.Month(), date.Day(), now, runsShown)
		day := dayJSON{Runs: runs}
		for _, t := range times {
			run := runJSON{At: t.At.Format("15:04"), Note: t.Note}
			if t.Change != "" {
				run.Note, run.Change = t.Change, true
			}
			day.First = append(day.First, run)
		}
		row.Days = append(row.Days, day)
	}
	return encoded(row)
}

// before is the run before the next one, if both are of an interval (@every).
func before(reader *cronruns.Reader, next time.Time) time.Time {
	for _, t := range reader.Next(next, 1) {
		if t.Change == "" {
			return next.Add(next.Sub(t.At))
		}
	}
	return next
}
