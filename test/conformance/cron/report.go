package cron

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// wanted are the events that must have been seen, or the run has not covered what
// it says it does.
var wanted = []string{
	"SuccessfulCreate", "SuccessfulDelete", "SawCompletedJob", "MissingJob", "UnexpectedJob", "MissSchedule", "JobAlreadyActive", "TooManyMissedTimes",
}

func countEvent(events map[string]int, line string) {
	words := strings.Fields(line)
	if len(words) > 2 && words[0] == "event" {
		events[strings.TrimSuffix(words[2], ":")]++
	}
}

func report(t *testing.T, known, events map[string]int, crowded int) {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "%-24s %s\n", "event", "different texts seen")
	for _, reason := range slices.Sorted(maps.Keys(events)) {
		fmt.Fprintf(&out, "%-24s %d\n", reason, events[reason])
	}
	fmt.Fprintf(&out, "%-24s %d\n", "too many to compare", crowded)
	for _, d := range differences() {
		fmt.Fprintf(&out, "\ndeliberate difference %q: seen in %d cases\n  %s\n", d.name, known[d.name], d.reason)
	}
	t.Log("\n" + out.String())
	for _, reason := range wanted {
		if events[reason] == 0 {
			t.Errorf("no %s was seen: what leads to it is not covered", reason)
		}
	}
}
