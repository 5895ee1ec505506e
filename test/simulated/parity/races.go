package parity

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/test/simulated/parity/virtual"
)

// Some moments have two right outcomes: if a pod ends while the Job is scaled down, a
// controller may see either first. Our outcome is right if the built-in side has the
// same one when it sees things later.

// How late things may be seen: longer than messages take, longer than the built-in
// controller collects events, and longer than its first and its second delay after a
// failure.
const (
	blink    = 100 * time.Millisecond
	batch    = 1500 * time.Millisecond
	retry    = 12 * time.Second
	retryTwo = 25 * time.Second
)

// replays are players that see things late. A watch may show things so late: events of one
// kind arrive in order, but possibly late.
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
		{"pods": {By: blink}},
		{"jobs": {By: blink}},
		{"pods": {By: 6 * batch}},
		{"jobs": {By: 6 * batch}},
		{"pods": {Apart: retry}},
		{"pods": {Apart: retryTwo}},
	}
	var players []player
	for i, l := range late {
		players = append(players, player{builtin: true, late: l, seed: c.seed + uint64(i+1)<<32})
	}
	return players
}

// explainedByRace reports whether the built-in side, if it sees something late, shows all that
// ours has shown, up to the moment at which they first differed. known is the deliberate
// difference that remains, if any.
func (c *Case) explainedByRace(t *testing.T, parted *parting, ours *transcript) (known []string, explained bool) {
	if parted.ours == nil {
		return nil, false
	}
	short := *c
	short.Steps = c.Steps[:parted.at] // The first moment is before the first step.
	seen := *ours
	seen.moments, seen.err = ours.moments[:parted.at+1], nil
	for _, p := range c.replays() {
		again := p.play(t, &short)
		again.shapes = seen.shapes // They are compared only at the end of a case.
		names, differs := short.compare(again, &seen)
		switch {
		case differs == nil && len(names) == 0:
			return nil, true
		case differs == nil || differs.at != parted.at:
		case verdictFirst(differs.builtin, differs.ours):
			known = []string{verdictIsFirst}
		case latePod(differs.builtin, differs.ours):
			known = []string{podBeforeTheEnd}
		}
	}
	if known != nil {
		return known, true
	}
	return short.explainedByRest(t, &seen)
}

// explainedByRest reports whether the built-in side shows all that ours has shown, if it is at
// rest between the steps of the last line. Our side may act between two of them. The built-in
// side is too slow for that, and can see only one of their effects late: its own status write
// after the first step conflicts with the second. So little time passes between the steps that the
// node may not have started the pods that were created meanwhile. known is the deliberate
// difference that remains, if any.
func (c *Case) explainedByRest(t *testing.T, seen *transcript) (known []string, explained bool) {
	last := len(c.Steps) - 1
	if last < 0 || !strings.Contains(c.Steps[last], " & ") {
		return nil, false
	}
	for _, pendingFrom := range []int{0, last + 1} {
		p := player{builtin: true, seed: c.seed, pendingFrom: pendingFrom}
		if known, explained = c.explainedApart(t, p, seen); explained {
			return known, true
		}
	}
	return nil, false
}

// explainedApart is explainedByRest for one way in which the built-in side may play.
func (c *Case) explainedApart(t *testing.T, p player, seen *transcript) (known []string, explained bool) {
	last := len(c.Steps) - 1
	apart := *c
	apart.Steps = slices.Concat(c.Steps[:last], strings.Split(c.Steps[last], " & "))
	again := p.play(t, &apart)
	if again.err != nil {
		return nil, false
	}
	moments := again.moments[len(c.Steps):] // The first moment is before the first step.
	end := moment{line: c.Steps[last], view: moments[len(moments)-1].view}
	for _, m := range moments {
		end.counts = append(end.counts, m.counts...)
		end.refused = end.refused || m.refused
	}
	again.moments = append(again.moments[:len(c.Steps)], end)
	again.shapes = seen.shapes
	names, differs := c.compare(again, seen)
	if differs != nil && differs.at == len(c.Steps) && latePod(differs.builtin, differs.ours) {
		return []string{podBeforeTheEnd}, true
	}
	return nil, differs == nil && len(names) == 0
}

// verdictFirst reports whether views of a Job with a verdict differ only in pods that
// ended by themselves and still exist on our side.
func verdictFirst(builtin, ours []string) bool {
	decided := contains(ours, ": FailureTarget=True ") || contains(ours, ": SuccessCriteriaMet=True ")
	return decided && slices.Equal(withoutDeletions(builtin), withoutDeletions(ours))
}

var hasEnded = regexp.MustCompile(`^(pod .*(?:Failed|Succeeded))( gone)?(.*): (\d+)$`)

// withoutDeletions are the sorted lines, which no longer say whether ended pods are gone.
func withoutDeletions(lines []string) []string {
	var rest []string
	counts := map[string]int{}
	for _, line := range lines {
		match := hasEnded.FindStringSubmatch(line)
		switch {
		case match != nil:
			n, _ := strconv.Atoi(match[4]) // They are digits.
			counts[match[1]+match[3]] += n
		case !strings.HasPrefix(line, "event: Normal SuccessfulDelete "):
			rest = append(rest, line)
		}
	}
	for class, n := range counts {
		rest = append(rest, fmt.Sprintf("%s: %d", class, n))
	}
	slices.Sort(rest)
	return rest
}

var (
	finishedLine = regexp.MustCompile(`^condition \d: (Complete|Failed)=True `)
	podsLine     = regexp.MustCompile(`^(pod .*): (\d+)$`)
	strangerPod  = regexp.MustCompile(`^pod \w+(( tracked)?( ready)? orphan|( ready)?) number \d+$`)
	deletedPod   = regexp.MustCompile(`^pod \w+ deleting( ready)? number \d+$`)
	goneFailed   = regexp.MustCompile(`^pod Failed gone number \d+$`)
	// endLine matches lines that change when a Job waits for a pod before it ends.
	endLine = regexp.MustCompile(`^(active=|startTime=|event: Normal Completed |event: Warning |condition \d: (Complete|Failed)=True )`)
)

// latePod reports whether views of a Job that ends differ only in one pod, which somebody else made
// for the Job or without a controller: ours has deleted it, after it adopted it if need be. If
// deleted pods are held, ours waits for it.
func latePod(builtin, ours []string) bool {
	const deleted = `event: Normal SuccessfulDelete "Deleted pod: <pod>"` // Others may have been deleted before.
	builtin, ours = podByPod(builtin), podByPod(ours)
	onlyBuiltin, onlyOurs := without(builtin, ours), without(ours, builtin)
	waits := slices.ContainsFunc(builtin, finishedLine.MatchString) && !slices.ContainsFunc(ours, finishedLine.MatchString)
	if waits && withPrefix(ours, "active=0 ready=0 terminating=1 ") {
		onlyBuiltin, onlyOurs = slices.DeleteFunc(onlyBuiltin, endLine.MatchString), slices.DeleteFunc(onlyOurs, endLine.MatchString)
	}
	onlyOurs = slices.DeleteFunc(onlyOurs, func(line string) bool { return line == deleted })
	if len(onlyBuiltin) != 1 || !strangerPod.MatchString(onlyBuiltin[0]) || len(onlyOurs) != 1 || !slices.Contains(ours, deleted) {
		return false
	}
	if waits {
		return deletedPod.MatchString(onlyOurs[0])
	}
	return slices.ContainsFunc(ours, finishedLine.MatchString) && goneFailed.MatchString(onlyOurs[0])
}

// podByPod has a line for each pod in the place of each line that counts alike ones.
func podByPod(lines []string) []string {
	var all []string
	for _, line := range lines {
		match := podsLine.FindStringSubmatch(line)
		if match == nil {
			all = append(all, line)
			continue
		}
		n, _ := strconv.Atoi(match[2]) // They are digits.
		for i := range n {
			all = append(all, fmt.Sprintf("%s number %d", match[1], i+1))
		}
	}
	return all
}

// without returns the lines that the others lack, sorted.
func without(lines, others []string) []string {
	return slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })))
}

func isUnfit(err error) bool { return errors.Is(err, errUnfit) }
