package schedule

import (
	"slices"
	"time"
)

const neverReturns = "the built-in controller never returns from a day that was left out"

// toleratedRow is the row in services/differences that clockReasons are about.
const toleratedRow = "clock-changes"

// clockReasons are the reasons for which a schedule may be due at other times than
// with the built-in controller: after a clock change of this kind, it leaves out
// times that the clocks do show, some for years.
var clockReasons = []struct {
	name string
	is   func(clockChange) bool
}{
	{neverReturns, func(c clockChange) bool { return c.forward >= 24*time.Hour }},
	{
		"the built-in controller goes on from the wrong minute when clocks change by a part of an hour",
		func(c clockChange) bool { return c.forward%time.Hour != 0 },
	},
	{
		"the built-in controller goes on from the wrong hour when clocks change around midnight",
		func(c clockChange) bool { return closeToMidnight(c.shownBefore) || closeToMidnight(c.shownAfter) },
	},
}

// A clockChange is a change of a zone's clocks, by how much forward, and what
// they show just before and after.
type clockChange struct {
	at                      time.Time
	forward                 time.Duration
	shownBefore, shownAfter time.Time
}

func closeToMidnight(shown time.Time) bool {
	return shown.Hour() == 23 || (shown.Hour() == 0 && shown.Minute() == 0)
}

// explain finds the reason for a difference: a change of the clock between the
// begin of a window, to which the built-in controller goes back to the begin of
// the month, and the difference.
func explain(loc *time.Location, begin, first time.Time) string {
	for _, d := range clockReasons {
		if slices.ContainsFunc(changes(loc, begin.AddDate(0, 0, -40), first.AddDate(0, 0, 1)), d.is) {
			return d.name
		}
	}
	return ""
}

// leftOutDay is when a day is left out in the window that the built-in
// controller may look at; zero if none is.
func leftOutDay(loc *time.Location, begin time.Time) time.Time {
	for _, c := range changes(loc, begin.AddDate(-1, 0, 0), begin.AddDate(20, 0, 0)) {
		if clockReasons[0].is(c) {
			return c.at
		}
	}
	return time.Time{}
}

// firstDifference is the earlier of the first two times that differ.
func firstDifference(theirs, ours []string, loc *time.Location) time.Time {
	var first time.Time
	for i := range max(len(theirs), len(ours)) {
		for _, list := range [][]string{theirs, ours} {
			if i >= len(list) || list[i] == "never" {
				continue
			}
			at, err := time.Parse(time.RFC3339, list[i])
			if err == nil && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
		if i >= len(theirs) || i >= len(ours) || theirs[i] != ours[i] {
			return first.In(loc)
		}
		first = time.Time{}
	}
	return first
}

// changes lists the changes of a zone's clocks after begin and before end.
func changes(loc *time.Location, begin, end time.Time) []clockChange {
	var list []clockChange
	for at := begin; at.Before(end); {
		_, change := at.In(loc).ZoneBounds()
		if change.IsZero() {
			break
		}
		// On the last day of a leap year the package time names a change of the past.
		if !change.After(at) {
			change = at.Add(time.Hour)
		}
		before, after := change.Add(-time.Second).In(loc), change.In(loc)
		if forward := offset(after) - offset(before); forward != 0 {
			list = append(list, clockChange{change, forward, before, after})
		}
		at = change
	}
	return list
}

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
