package cron

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/test/simulated/parity/virtual"
)

// run plays a life on both sides and compares.
func (l *life) run(t *testing.T, jumps int) {
	builtin, wrong := l.play(t, player{builtin: true, seed: l.seed}, &planner{l, jumps})
	ours, ourWrong := l.play(t, player{seed: l.seed}, nil)
	if wrong = append(wrong, ourWrong...); len(wrong) > 0 {
		l.problem = strings.Join(wrong, "\n  ")
		return
	}
	l.see(builtin)
	l.see(ours)
	at, problem := l.compare(builtin, ours)
	switch {
	case problem == "":
	case l.explainedByRace(t, ours[:at+1]):
		l.race = problem
	default:
		l.problem = problem
	}
}

// compare compares the moments of both sides up to the first deliberate difference that makes
// later moments incomparable. It returns the first problem, and the index of its moment.
func (l *life) compare(builtin, ours []moment) (at int, problem string) {
	crowded := false
	for i := range min(len(builtin), len(ours)) {
		b, o := builtin[i], ours[i]
		if b.answer != o.answer {
			return i, fmt.Sprintf("%s\n  taken differently: built-in %q, ours %q", l.deeds[i].text, b.answer, o.answer)
		}
		if crowded = crowded || b.crowded || o.crowded; crowded {
			b.view, o.view = withoutEvents(b.view), withoutEvents(o.view)
		}
		if slices.Equal(b.view, o.view) {
			continue
		}
		if names, ok := deliberate(b.view, o.view); ok {
			l.note(names...)
			continue
		}
		if name := parting(l.deeds[i], b.view, o.view); name != "" {
			l.note(name)
			return i, ""
		}
		return i, fmt.Sprintf("after %s (-built-in +ours):\n%s", l.deeds[i].text, virtual.Difference(b.view, o.view))
	}
	l.crowded = l.crowded || crowded
	return 0, ""
}

func (l *life) note(names ...string) {
	for _, name := range names {
		l.known[name] = true
	}
}

// late is longer than a controller takes to react.
const late = 1500 * time.Millisecond

// explainedByRace reports whether the built-in side shows all that ours has shown, if it
// sees something late.
func (l *life) explainedByRace(t *testing.T, ours []moment) bool {
	short := *l
	short.deeds = l.deeds[:len(ours)]
	for i, lateness := range []virtual.Latenesses{{"jobs": {By: late}}, {"cronjobs": {By: late}}, nil} {
		again, wrong := short.play(t, player{builtin: true, seed: l.seed + uint64(i+1)<<32, late: lateness}, nil)
		if len(wrong) == 0 && slices.EqualFunc(again, ours, func(a, b moment) bool { return slices.Equal(a.view, b.view) }) {
			return true
		}
	}
	return false
}
