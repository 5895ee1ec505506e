package views

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
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

func cronRow(o executor.CronJobObservation, now time.Time) json.RawMessage {
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
