package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
)

// maxFailures bounds the pods that fail in one generated case: the built-in
// controller doubles its delay of 10 s with each.
const maxFailures = 2

// A generator makes one case out of a seed: first the spec, then, while the case
// runs, step by step what fits the state that both sides agree on.
type generator struct {
	*rand.Rand
	spec         *batchv1.JobSpec
	failures     int
	held, manual bool
	// expire: the Job is to pass its deadline, which it gets while it runs.
	expire, expired, deleted bool
}

// Generated makes the case of a seed.
func Generated(seed uint64) *Case {
	g := &generator{Rand: seeded(seed)}
	c := &Case{Name: fmt.Sprintf("seed-%d", seed), Spec: g.newSpec(), next: g.next}
	g.spec = &c.Spec
	g.manual = g.chance(12)
	c.Manual = g.manual
	return c
}

// GeneratedInRestarts makes the case of a seed, to be run while the controllers
// are restarted.
func GeneratedInRestarts(seed uint64) *Case {
	c := Generated(seed)
	c.Name, c.Restarts = "restarts-"+c.Name, true
	return c
}

// chance is true in percent of 100 cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) between(low, high int32) int32 { return low + g.Int32N(high-low+1) }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) newSpec() batchv1.JobSpec {
	spec := newSpec()
	n := g.between(1, 4)
	if g.chance(4) {
		n = 0
	}
	kind := g.IntN(100)
	if kind < 85 {
		spec.Completions = ptr(n)
	}
	if kind < 60 {
		spec.CompletionMode = ptr(batchv1.IndexedCompletion)
	}
	spec.Parallelism = ptr(pick(g, max(n, 1), max(n, 1), g.between(1, 5)))
	if g.chance(50) {
		spec.BackoffLimit = ptr(g.between(0, 2))
	}
	switch {
	case g.chance(8):
		g.expire = true
	case g.chance(8):
		spec.ActiveDeadlineSeconds = ptr[int64](600)
	}
	if g.chance(12) {
		spec.Suspend = ptr(true)
	}
	if kind < 60 {
		g.addIndexFields(&spec, n)
	}
	g.addPolicies(&spec)
	return spec
}

func (g *generator) addIndexFields(spec *batchv1.JobSpec, n int32) {
	if g.chance(40) {
		spec.BackoffLimitPerIndex = ptr(g.between(0, 1))
		if g.chance(50) && n > 0 {
			spec.MaxFailedIndexes = ptr(g.between(0, min(n, 2)))
		}
	}
	if g.chance(35) && n > 0 {
		rules := []batchv1.SuccessPolicyRule{g.successRule(n)}
		if g.chance(30) {
			rules = append(rules, g.successRule(n))
		}
		spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: rules}
	}
}

func (g *generator) successRule(n int32) batchv1.SuccessPolicyRule {
	rule := batchv1.SuccessPolicyRule{}
	most := n
	if g.chance(60) {
		first := g.between(0, n-1)
		last := g.between(first, n-1)
		rule.SucceededIndexes = ptr(fmt.Sprintf("%d-%d", first, last))
		if first == last {
			rule.SucceededIndexes = ptr(fmt.Sprint(first))
		}
		most = last - first + 1
	}
	if rule.SucceededIndexes == nil || g.chance(40) {
		rule.SucceededCount = ptr(g.between(1, most))
	}
	return rule
}

// exits are what containers and rules of failure policies choose from.
var exits = []int32{1, 42, 137}

func (g *generator) addPolicies(spec *batchv1.JobSpec) {
	switch {
	case g.chance(35):
		var rules []batchv1.PodFailurePolicyRule
		for range g.between(1, 3) {
			rules = append(rules, g.failureRule(spec.BackoffLimitPerIndex != nil))
		}
		failurePolicy(rules...)(spec)
		if g.chance(30) {
			replaceFailed(spec)
		}
		return
	case g.chance(25):
		onFailure(spec)
	}
	if g.chance(30) {
		spec.PodReplacementPolicy = ptr(pick(g, batchv1.Failed, batchv1.TerminatingOrFailed))
	}
}

func (g *generator) failureRule(perIndex bool) batchv1.PodFailurePolicyRule {
	actions := []batchv1.PodFailurePolicyAction{"FailJob", "Ignore", "Count"}
	if perIndex {
		actions = append(actions, "FailIndex")
	}
	action := pick(g, actions...)
	if g.chance(35) {
		return onDisruption(action)
	}
	rule := onExit(action, pick(g, exits...))
	if g.chance(30) {
		rule.OnExitCodes.Operator = batchv1.PodFailurePolicyOnExitCodesOpNotIn
	}
	if g.chance(30) {
		rule.OnExitCodes.ContainerName = ptr(pick(g, "main", "second"))
	}
	return rule
}

// next chooses a step, or "" when the case ends.
func (g *generator) next(f facts) string {
	switch {
	case g.deleted || !f.exists:
		return ""
	case f.finished:
		if len(f.ending) > 0 {
			return g.end(f)
		}
		if g.chance(25) {
			return g.delete()
		}
		return ""
	case g.expired:
		return "wait"
	case g.expire && !f.suspended && g.chance(50):
		g.expired = true
		return "activeDeadlineSeconds 1"
	}
	choices := g.choices(f)
	if len(choices) == 0 {
		return ""
	}
	return pick(g, choices...)()
}

// choices are what may come next, the likely ones several times.
func (g *generator) choices(f facts) []func() string {
	var choices []func() string
	add := func(times int, ok bool, choice func() string) {
		if ok {
			choices = append(choices, slices.Repeat([]func() string{choice}, times)...)
		}
	}
	mayFail := g.failures < maxFailures
	indexes := g.spec.CompletionMode != nil
	// Which of several pods alike is removed is nobody's business, but which
	// index then goes on shows.
	settled := !indexes || len(f.pending) == 0
	add(8, len(f.active) > 0, func() string {
		if g.spec.SuccessPolicy != nil {
			return "succeed " + g.some(f.active, 1)
		}
		return "succeed " + g.some(f.active, len(f.active))
	})
	add(8, len(f.active) > 0 && mayFail, func() string { return g.fail(f) })
	add(4, len(f.active) > 0 && g.spec.Template.Spec.RestartPolicy == "OnFailure", func() string {
		return fmt.Sprintf("restart %s count=%d", g.some(f.active, 2), g.between(1, 2))
	})
	add(2, len(f.active) > 0 && mayFail, func() string {
		g.failures++
		return "remove " + g.some(f.active, 1)
	})
	add(9, len(f.pending) > 0 && g.manual, func() string { return "run " + g.some(f.pending, len(f.pending)) })
	add(5, len(f.ending) > 0, func() string { return g.end(f) })
	add(2, settled, func() string { return fmt.Sprintf("parallelism %d", g.between(0, 5)) })
	add(3, settled && indexes && g.spec.SuccessPolicy == nil, func() string { return fmt.Sprintf("resize %d", g.between(1, 5)) })
	add(2, !f.suspended, func() string { return "suspend" })
	add(10, f.suspended, func() string { return "resume" })
	add(2, !g.held && !g.expire, func() string { g.held = true; return "hold" })
	add(1, true, g.delete)
	return choices
}

func (g *generator) delete() string {
	g.deleted = true
	return "delete " + pick(g, "Background", "Foreground", "Orphan")
}

func (g *generator) end(f facts) string {
	return "end " + g.some(f.ending, len(f.ending)) + " " + pick(g, "failed", "succeeded")
}

// fail is about one pod at a time, as "succeed" is where there is a success
// policy: a controller may act on the first of several events before the next.
func (g *generator) fail(f facts) string {
	g.failures++
	line := fmt.Sprintf("fail %s exit=%d", g.some(f.active, 1), pick(g, exits...))
	if g.chance(25) {
		line += " container=second"
	}
	if g.chance(25) {
		line += " condition=DisruptionTarget"
	}
	return line
}

// some selects up to most pods, at least one, in words that mean the same on
// both sides.
func (g *generator) some(from []handle, most int) string {
	n := 1 + g.IntN(min(most, len(from)))
	if from[0].index < 0 {
		return fmt.Sprint(n)
	}
	var indexes []string
	for _, i := range g.Perm(len(from))[:n] {
		indexes = append(indexes, fmt.Sprint(from[i].index))
	}
	slices.Sort(indexes)
	return "#" + strings.Join(slices.Compact(indexes), ",")
}
