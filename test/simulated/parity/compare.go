package parity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"jobpolicy.dev/test/simulated/parity/virtual"
)

// A result is the outcome of a case.
type result struct {
	c *Case
	// problem is empty if the sides agree.
	problem string
	// unfit: the script is wrong, and not a side.
	unfit bool
	// race is the difference, if the built-in side can behave as ours did (see races.go).
	race string
	// known are the deliberate differences that were seen.
	known []string
	end   string
}

// A parting is where the views of the sides at rest first differ.
type parting struct {
	// at is the index of the moment; len(moments) if only the shapes differ.
	at            int
	builtin, ours []string
	problem       string
}

// run plays a case on both sides, first on the built-in one, and compares.
func run(t *testing.T, c *Case) result {
	builtin := player{builtin: true, seed: c.seed}.play(t, c)
	c.next = nil // The steps are known by now.
	ours := player{seed: c.seed}.play(t, c)
	known, parted := c.compare(builtin, ours)
	r := result{c: c, known: known, end: builtin.end}
	if len(ours.wrong)+len(builtin.wrong) > 0 {
		r.problem = strings.Join(slices.Concat(ours.wrong, builtin.wrong), "\n  ")
		return r
	}
	if parted == nil {
		return r
	}
	if known, explained := c.explainedByRace(t, parted, ours); explained {
		r.known, r.race = known, parted.problem
		return r
	}
	r.problem = parted.problem
	r.unfit = isUnfit(builtin.err)
	return r
}

// compare compares two transcripts up to the first moment at which they differ. If the
// differences are deliberate, it names them; later moments cannot be compared.
func (c *Case) compare(builtin, ours *transcript) (known []string, _ *parting) {
	e := exemption{restarts: c.inRestarts()}
	for i := range max(len(builtin.moments), len(ours.moments)) {
		if i >= len(builtin.moments) || i >= len(ours.moments) {
			return nil, &parting{at: i, problem: fmt.Sprintf("built-in: %v\n  ours: %v", builtin.err, ours.err)}
		}
		b, o := builtin.moments[i], ours.moments[i]
		e = e.after(b.line)
		if e.loose && !slices.Equal(b.counts, o.counts) {
			return nil, nil // There are other pods by chance.
		}
		if b.refused != o.refused || !slices.Equal(b.counts, o.counts) {
			return nil, &parting{at: i, problem: fmt.Sprintf("%s: refused, or about how many pods: %t %v on the built-in side, %t %v on ours", b.when(i), b.refused, b.counts, o.refused, o.counts)}
		}
		told := max(b.view.told, o.view.told)
		shownB, shownO := e.comparable(b.view, told), e.comparable(o.view, told)
		if slices.Equal(shownB, shownO) {
			if e.loose && e.orphaning && !slices.Equal(orphans(b.view), orphans(o.view)) {
				return nil, nil // Later steps are about other pods by chance.
			}
			continue
		}
		names, same := alikeButFor(shownB, shownO)
		if same {
			return names, nil
		}
		return nil, &parting{at: i, builtin: shownB, ours: shownO, problem: fmt.Sprintf("%s (-built-in +ours):\n%s", b.when(i), virtual.Difference(shownB, shownO))}
	}
	return nil, c.compareEnds(e, builtin, ours)
}

func (c *Case) compareEnds(e exemption, builtin, ours *transcript) *parting {
	at := len(builtin.moments)
	if c.generated && builtin.err != nil && fmt.Sprint(builtin.err) == fmt.Sprint(ours.err) {
		return nil // The last step is impossible, because its Job's name is never free.
	}
	if builtin.err != nil || ours.err != nil {
		return &parting{at: at, problem: fmt.Sprintf("built-in: %v\n  ours: %v", builtin.err, ours.err)}
	}
	if diff := gocmp.Diff(builtin.shapes, ours.shapes); diff != "" && !e.loose {
		return &parting{at: at, problem: "shape of the Job and its pods (-built-in +ours):\n" + diff}
	}
	return nil
}

func (m moment) when(i int) string {
	switch {
	case i == 0:
		return "the Job is created"
	case m.refused:
		return fmt.Sprintf("after step %d (%s, refused)", i, m.line)
	}
	return fmt.Sprintf("after step %d (%s)", i, m.line)
}
