package cron

import (
	"slices"
	"strings"
	"time"
)

// A knownDifference is a deliberate difference from the built-in controllers. explains
// reports whether it accounts for one line that only one side shows.
type knownDifference struct {
	// row is the difference's row in services/differences.
	row      string
	explains func(line string, ours bool) bool
}

func knownDifferences() []knownDifference {
	only := func(side bool, reason string) func(string, bool) bool {
		return func(line string, ours bool) bool { return ours == side && eventOf(line, reason) }
	}
	parts := func(string, bool) bool { return false }
	const built, own = false, true
	return []knownDifference{
		{"end-of-a-deleted-run", only(own, "SawCompletedJob")},
		{"missing-after-history", only(built, "MissingJob")},
		{"deleted-twice", func(line string, ours bool) bool {
			return !ours && eventOf(line, "FailedDelete") && strings.HasSuffix(line, " not found")
		}},
		{"told-too-late", only(own, "MissSchedule")},
		{takenName, only(own, "FailedCreate")},
		// The explanation always says what these events repeat at every look.
		{toldOnce, only(built, "JobAlreadyActive")},
		{toldOnce, only(built, "TooManyMissedTimes")},
		{missedIrregular, parts},
		{everyWithDeadline, parts},
		{runsInTime, parts},
	}
}

// Rows of differences that more than one line shows. After one of them, other than toldOnce, the
// sides are not compared any more.
const (
	toldOnce          = "events-told-once"
	missedIrregular   = "irregular-missed-runs"
	everyWithDeadline = "every-with-short-deadline"
	runsInTime        = "deadline-of-zero"
	takenName         = "taken-name"
)

// toleratedRows are the rows of knownDifferences, each once.
func toleratedRows() []string {
	var rows []string
	for _, d := range knownDifferences() {
		rows = append(rows, d.row)
	}
	return slices.Compact(rows)
}

// irregular reports whether ours started a run that the built-in controller did
// not find. The built-in controller counts how often the first gap between two runs fits
// into the time that has passed, and looks no further back than that. If the gaps differ,
// it may find nothing.
func irregular(d deed, builtin, ours []string) bool {
	_, scheduled := lastSchedule(ours)
	return d.irregular && scheduled && (later(builtin, ours) || d.every)
}

// miscounted reports whether the only other difference is ours' event about too many missed
// runs: the built-in controller counts by the first gap here, too.
func miscounted(builtin, ours []string) bool {
	_, rest := deliberate(builtin, slices.DeleteFunc(slices.Clone(ours), func(line string) bool { return eventOf(line, "TooManyMissedTimes") }))
	return rest
}

// later reports whether ours has started a run that is later than any of the
// built-in controller's.
func later(builtin, ours []string) bool {
	before, okBefore := lastSchedule(builtin)
	after, okAfter := lastSchedule(ours)
	return okAfter && (!okBefore || before.Before(after))
}

// heldBack reports whether the only other difference is ours' event about a run that it held
// back: the built-in controller is too late for that run.
func heldBack(builtin, ours []string) bool {
	_, rest := deliberate(builtin, slices.DeleteFunc(slices.Clone(ours), func(line string) bool { return eventOf(line, "JobAlreadyActive") }))
	return rest
}

// parting is the difference at which the sides part, or empty.
func parting(d deed, builtin, ours []string) string {
	switch {
	case d.every && irregular(d, builtin, ours):
		return everyWithDeadline
	case irregular(d, builtin, ours), d.irregular && miscounted(builtin, ours):
		return missedIrregular
	case d.hasty && (later(builtin, ours) || heldBack(builtin, ours)):
		return runsInTime
	case d.taken && len(jobsOf(ours)) > len(jobsOf(builtin)):
		return takenName
	}
	return ""
}

func jobsOf(view []string) []string {
	return slices.DeleteFunc(slices.Clone(view), func(line string) bool { return !strings.HasPrefix(line, "job ") })
}

// lastSchedule reads the time from a view's status line.
func lastSchedule(view []string) (time.Time, bool) {
	if len(view) == 0 {
		return time.Time{}, false
	}
	_, text, _ := strings.Cut(view[0], "last schedule ")
	text, _, _ = strings.Cut(text, ",")
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// deliberate reports whether the differences on the list account for every difference between
// the views, and names those that do.
func deliberate(builtin, ours []string) ([]string, bool) {
	var names []string
	account := func(line string, isOurs bool) bool {
		for _, d := range knownDifferences() {
			if d.explains(line, isOurs) {
				names = append(names, d.row)
				return true
			}
		}
		return false
	}
	for _, line := range builtin {
		if !slices.Contains(ours, line) && !account(line, false) {
			return nil, false
		}
	}
	for _, line := range ours {
		if !slices.Contains(builtin, line) && !account(line, true) {
			return nil, false
		}
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// eventOf reports whether the line is an event of the reason.
func eventOf(line, reason string) bool {
	words := strings.Fields(line)
	return len(words) > 2 && words[0] == "event" && words[2] == reason+":"
}
