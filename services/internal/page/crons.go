package page

import (
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/cronjob"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/internal/cronruns"
)

const (
	// calendarDays is how many days the calendar has.
	calendarDays = 7
	// runsShown is how many runs of a day are shown with their times.
	runsShown = 3
)

// cronJSON is one row of the calendar.
type cronJSON struct {
	UID       types.UID  `json:"uid"`
	Namespace string     `json:"ns"`
	Name      string     `json:"name"`
	Schedule  string     `json:"schedule"`
	Zone      string     `json:"zone"`
	Suspended bool       `json:"suspended,omitempty"`
	Active    int        `json:"active"`
	Last      *time.Time `json:"last,omitempty"`
	Next      *time.Time `json:"next,omitempty"`
	Reason    string     `json:"reason"`
	Days      []dayJSON  `json:"days,omitempty"`
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

func cronRow(o cronjob.Observation, now time.Time) json.RawMessage {
	cron := o.CronJob
	plan := cronruns.PlanOf(cron, o.Zone)
	row := cronJSON{
		UID: cron.UID, Namespace: cron.Namespace, Name: cron.Name, Schedule: cron.Spec.Schedule, Zone: plan.Clock(),
		Suspended: o.Suspended, Active: len(cron.Status.Active), Reason: o.Explanation.GetSummary(),
	}
	if last := cron.Status.LastScheduleTime; last != nil {
		row.Last = new(wire.Time(last.Time))
	}
	reader, err := cronruns.Read(plan)
	if err != nil || o.Suspended || cron.DeletionTimestamp != nil {
		return encoded(row) // the reason says why
	}
	if next := o.Explanation.GetNextScheduleTime(); next != nil {
		row.Next = new(wire.Time(next.AsTime()))
	}
	first := now.UTC()
	for i := range calendarDays {
		date := first.AddDate(0, 0, i)
		runs, times := reader.Day(date.Year(), date.Month(), date.Day(), now, runsShown)
		if row.Next != nil && strings.Contains(plan.Schedule, "@every ") {
			runs, times = intervalDay(reader, date, *row.Next)
		}
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

// intervalDay counts the runs of an interval (@every) on a day, and lists the first of them with
// the changes of the clock among them. All count from the next run.
func intervalDay(reader *cronruns.Reader, date, next time.Time) (runs int64, first []cronruns.Time) {
	begin, end := reader.StartOfDay(date.Date()), reader.StartOfDay(date.AddDate(0, 0, 1).Date())
	last := next // the run before those of the day; it begins as the one before next
	for _, t := range reader.Next(next, 1) {
		if t.Change == "" {
			last = next.Add(next.Sub(t.At))
		}
	}
	last = reader.Latest(last, begin.Add(-time.Nanosecond))
	runs = reader.Count(last, end.Add(-time.Nanosecond))
	for _, t := range reader.Next(last, runsShown) {
		if !t.At.Before(begin) && t.At.Before(end) {
			first = append(first, t)
		}
	}
	return runs, first
}
