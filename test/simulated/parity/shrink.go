package parity

import (
	"slices"
	"testing"

	"jobpolicy.dev/test/simulated/jobspec"
)

// maxShrunk limits how many failing cases are shrunk. If more fail, the cause is easy
// to see without a small script.
const maxShrunk = 6

// shrinkAll replaces failing results by those of smaller cases.
func shrinkAll(t *testing.T, results []result) {
	shrunk := 0
	for i, r := range results {
		if r.problem == "" || r.unfit || shrunk == maxShrunk {
			continue
		}
		shrunk++
		results[i] = shrink(t, r)
	}
}

// shrink searches for a shorter script and a simpler Job that still show a difference.
// It removes one step or field at a time, and continues with the first variant that
// fails.
func shrink(t *testing.T, failing result) result {
	for _, c := range failing.c.simpler() {
		if r := run(t, c); r.problem != "" && !r.unfit {
			return shrink(t, r)
		}
	}
	return failing
}

// simpler are the cases with one step less, or one field of the spec less.
func (c *Case) simpler() []*Case {
	var cases []*Case
	variant := func() *Case {
		v := *c
		v.next, v.Steps, v.Spec = nil, slices.Clone(c.Steps), *c.Spec.DeepCopy()
		cases = append(cases, &v)
		return &v
	}
	for i := range c.Steps {
		v := variant()
		v.Steps = slices.Delete(v.Steps, i, i+1)
	}
	for _, spec := range jobspec.Simpler(&c.Spec) {
		v := variant()
		v.Spec, v.specChanged = spec, true
	}
	return cases
}
