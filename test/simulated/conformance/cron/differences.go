package cron

import (
	"slices"
	"strings"
	"time"
)

// A knownDifference is a deliberate difference from the built-in controllers. explains
// reports whether it accounts for one line that only one side shows.
type knownDifference struct {
	name, reason string
	explains     func(line string, ours bool) bool
}

func differences() []knownDifference {
	only := func(side bool, reason string) func(string, bool) bool {
		return func(line string, ours bool) bool { return ours == side && eventOf(line, reason) }
	}
	const built, own = false, true
	return []knownDifference{
		{
			name:     "the end of a run is told even if its Job is deleted at once",
			reason:   "With a history limit of 0 the built-in controller deletes a finished Job before it looks for the ends of runs.",
			explains: only(own, "SawCompletedJob"),
		},
		{
			name:     "a Job that the history limit deleted is not missed",
			reason:   "The built-in controller may take its own deletion for somebody else's.",
			explains: only(built, "MissingJob"),
		},
		{
			name:   "a finished Job is deleted once",
			reason: "The built-in controller may look before it has seen its own deletion, and complain that the Job is not found.",
			explains: func(line string, ours bool) bool {
				return !ours && eventOf(line, "FailedDelete") && strings.HasSuffix(line, " not found")
			},
		},
		{
			name:     "a run that is too late is told",
			reason:   "The built-in controller looks no further back than the starting deadline, so it never sees the run that it would tell about.",
			explains: only(own, "MissSchedule"),
		},
		{
			name:     "a name that somebody else's Job has is told",
			reason:   "The built-in controller skips the run without a word.",
			explains: only(own, "FailedCreate"),
		},
		{
			name:     "a run that is held back is told when it is news",
			reason:   "The built-in controller repeats JobAlreadyActive at every look, even for a run that was due long ago. The explanation always says it.",
			explains: only(built, "JobAlreadyActive"),
		},
		{
			name:     missedIrregular,
			reason:   "The built-in controller takes the first gap between two runs for the gap between all, and counts @every from the deadline instead of from the last run.",
			explains: func(string, bool) bool { return false },
		},
		{
			name:     runsInTime,
			reason:   "The built-in controller compares to the nanosecond, and is never as fast as that.",
			explains: func(string, bool) bool { return false },
		},
		{
			name: takenIsSkipped,
			reason: "The built-in controller deletes the active Job first, if the policy is Replace, and then finds that somebody else's Job has the name of the next run. " +
				"It does not ask for the time of the run after it, so no run starts until something else happens to the CronJob or its Jobs.",
			explains: func(string, bool) bool { return false },
		},
		{
			name:     "missed times are told with the run that makes up for them",
			reason:   "The built-in controller repeats TooManyMissedTimes at every look as long as no run starts. The explanation always has the number.",
			explains: only(built, "TooManyMissedTimes"),
		},
	}
}

// Differences that more than one line shows. After one of them the sides are not compared
// any more.
const (
	missedIrregular = "the latest of many missed runs is found for irregular schedules, and for @every with a deadline"
	runsInTime      = "a run with a starting deadline of 0 starts in the second in which it is due"
	takenIsSkipped  = "a run whose name is taken replaces nothing, and the schedule goes on"
)

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
	case irregular(d, builtin, ours), d.irregular && miscounted(builtin, ours):
		return missedIrregular
	case d.hasty && (later(builtin, ours) || heldBack(builtin, ours)):
		return runsInTime
	case d.taken && len(jobsOf(ours)) > len(jobsOf(builtin)):
		return takenIsSkipped
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
		for _, d := range differences() {
			if d.explains(line, isOurs) {
				names = append(names, d.name)
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
