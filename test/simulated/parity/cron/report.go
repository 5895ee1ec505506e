package cron

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"jobpolicy.dev/services/differences"
)

// wanted are the events that a long enough run must have seen; otherwise it has not covered
// the controllers.
var wanted = []string{
	"SuccessfulCreate", "SuccessfulDelete", "SawCompletedJob", "MissingJob", "UnexpectedJob", "MissSchedule", "JobAlreadyActive", "TooManyMissedTimes",
}

// wantedFrom is the number of lives from which on all wanted events must occur.
const wantedFrom = 100

// see records what a life has shown.
func (l *life) see(moments []moment) {
	for _, m := range moments {
		for _, line := range m.view {
			l.shown[line] = true
		}
	}
}

func report(t *testing.T, lives []*life) {
	t.Helper()
	known, events, crowded, races := map[string]int{}, map[string]int{}, 0, 0
	for _, l := range lives {
		for name := range l.known {
			known[name]++
		}
		if l.crowded {
			crowded++
		}
		if l.race != "" {
			races++
		}
		for line := range l.shown {
			if words := strings.Fields(line); len(words) > 2 && words[0] == "event" {
				events[strings.TrimSuffix(words[2], ":")]++
			}
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-24s %s\n", "event", "different texts seen")
	for _, reason := range slices.Sorted(maps.Keys(events)) {
		fmt.Fprintf(&out, "%-24s %d\n", reason, events[reason])
	}
	fmt.Fprintf(&out, "%-24s %d\n%-24s %d\n", "too many to compare", crowded, "lives with a race", races)
	for _, id := range toleratedRows() {
		row := differences.Find(id)
		fmt.Fprintf(&out, "\ndeliberate difference %q: seen in %d lives\n  %s: built-in: %s; here: %s\n", id, known[id], row.What, row.BuiltIn, row.Here)
	}
	t.Log("\n" + out.String())
	for _, reason := range wanted {
		if events[reason] == 0 && len(lives) >= wantedFrom {
			t.Errorf("no %s was seen: what leads to it is not covered", reason)
		}
	}
}
