package conformance

import (
	"errors"
	"testing"
	"time"

	"jobpolicy.dev/test/conformance/virtual"
)

// Some moments have two right outcomes: if a pod ends while the Job is made
// smaller, a controller may hear of either first. What our side has shown is right
// if the built-in side shows it, too, when it hears of things later.

// batch is longer than the time for which the built-in controller gathers events.
const batch = 1500 * time.Millisecond

// replays are ways to see late. Only what a watch may do is among them: events of
// one kind come in order, but none has to come soon.
func (c *Case) replays() []player {
	late := []virtual.Latenesses{
		{"pods": {By: batch}},
		{"jobs": {By: batch}},
		{"pods": {Apart: batch}},
		{"jobs": {Apart: batch}},
		{"pods": {Apart: batch}, "jobs": {By: 2 * batch}},
		{"pods": {By: 2 * batch}, "jobs": {Apart: batch}},
		nil,
		{"pods": {Apart: batch}, "jobs": {Apart: batch}},
		{"pods": {By: 6 * batch}},
		{"jobs": {By: 6 * batch}},
	}
	var players []player
	for i, l := range late {
		players = append(players, player{builtin: true, late: l, seed: c.seed + uint64(i+1)<<32})
	}
	return players
}

// explainedByRace reports whether the built-in side shows all that ours has shown,
// up to where they parted, when it sees something late.
func (c *Case) explainedByRace(t *testing.T, parted *parting, ours *transcript) bool {
	if parted.ours == nil {
		return false
	}
	short := *c
	short.Steps = c.Steps[:parted.at] // The first moment is before the first step.
	seen := *ours
	seen.moments, seen.err = ours.moments[:parted.at+1], nil
	for _, p := range c.replays() {
		again := p.play(t, &short)
		again.shapes = seen.shapes // They are held against each other at the end only.
		if known, differs := short.compare(again, &seen); differs == nil && len(known) == 0 {
			return true
		}
	}
	return false
}

func isUnfit(err error) bool { return errors.Is(err, errUnfit) }
