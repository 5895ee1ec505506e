package conformance

import (
	"context"
	"fmt"
	"slices"
)

// maxReplays is how often a case with a difference is played again.
const maxReplays = 3

// A parting is the error that the sides rest with different views.
type parting struct {
	when          string
	builtin, ours []string
}

func (p *parting) Error() string {
	return fmt.Sprintf("%s (-built-in +ours):\n%s", p.when, lineDiff(p.builtin, p.ours))
}

// replayRaces plays cases with a difference again, and takes the replay as the
// result if it shows that the difference was a race's.
//
// Some moments have two right outcomes: if a pod ends while the Job is made
// smaller, a controller may hear of either first. What our side has shown is
// right if the built-in side shows it, too.
func (o oracle) replayRaces(ctx context.Context, results []result) {
	for i, first := range results {
		if first.parted == nil {
			continue
		}
		c := *first.c
		if c.next != nil {
			c.next = func(facts) string { return "" } // Its steps are known by now.
		}
		for n := range maxReplays {
			again := o.play(ctx, &c, fmt.Sprintf("again-%d-%d", i, n))
			if ranAsOurs(first, again) {
				again.race = first.problem
				o.logf("%s\n  was a race, which the built-in side has now run as ours did", first.c)
				results[i] = again
				break
			}
		}
	}
}

// ranAsOurs reports whether the sides agree in a replay, and the built-in side
// shows where they had parted what ours had shown there.
func ranAsOurs(first, again result) bool {
	return again.problem == "" && slices.Equal(first.parted.ours, again.shown[first.parted.when])
}
