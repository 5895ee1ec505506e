package parity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

// maxFailures limits the pods that fail in one generated case: the built-in controller
// doubles its delay of 10 s with each.
const maxFailures = 2

// hastyShare: in one of this many cases several things happen at once.
const hastyShare = 4

// A generator makes one case from a seed: first the spec; then, while the case runs,
// step by step what fits the state that both sides agree on.
type generator struct {
	*rand.Rand
	spec       *batchv1.JobSpec
	containers []string
	failures   int
	// foreign: another controller manages the Job.
	held, manual, restarts, foreign bool
	// hasty: any two things may happen at once, so there may be more than one right
	// outcome.
	hasty bool
	// expire: the Job gets a deadline while it runs, which passes. expired: it has got it.
	expire, expired bool
	// kept: the Job has a finalizer of a user.
	deleted, kept bool
	// strays: pods were taken out of the Job's selector.
	strays bool
}

// Generated makes the case of a seed.
func Generated(seed uint64) *Case { return generated(seed, false) }

// GeneratedInRestarts makes the case of a seed in which the controllers are killed and
// restarted, by steps and at random times.
func GeneratedInRestarts(seed uint64) *Case {
	c := generated(seed, true)
	c.Name, c.Restarts = "restarts-"+c.Name, true
	return c
}

func generated(seed uint64, restarts bool) *Case {
	g := &generator{Rand: seeded(seed), restarts: restarts}
	c := &Case{Name: fmt.Sprintf("seed-%d", seed), Spec: g.newSpec(), generated: true, next: g.next, seed: seed}
	g.spec = &c.Spec
	g.manual = g.chance(12)
	g.hasty = seed%hastyShare == 1 && c.Spec.SuccessPolicy == nil
	c.Manual = g.manual
	if c.Spec.ManualSelector != nil && c.Spec.CompletionMode == nil && g.chance(60) {
		c.Before = g.pod("other")
	}
	return c
}

// chance is true in percent of 100 cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) between(low, high int32) int32 { return low + g.Int32N(high-low+1) }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// next chooses a line, or "" when the case ends.
func (g *generator) next(f facts) string {
	line := g.line(f)
	if g.hasty && line != "" && line != "wait" && !g.deleted && g.chance(40) {
		if more := g.line(f); more != "" && more != "wait" && mix(line, more) && mix(more, line) {
			line += " & " + more
		}
	}
	if !g.restarts || line == "" || line == "wait" || !g.chance(30) {
		return line
	}
	crash := pick(g, "crash", "crash engine")
	if g.chance(50) {
		return crash + " & " + line
	}
	return line + " & " + crash
}

// mix reports whether the step in line may happen at the same time as another one. A step
// that makes too many pods may not, because the views show which of them are deleted.
// Neither may a step that removes a pod, or fails one in a way that may be ignored: such a
// pod is replaced at once here, and after a delay by the built-in controller.
func mix(line, more string) bool {
	harmless := begins(more, "edit", "try", "label")
	return harmless || !begins(line, "suspend", "resume", "parallelism", "resize", "remove", "relabel") && !strings.Contains(line, "condition=")
}

func begins(line string, words ...string) bool {
	first, _, _ := strings.Cut(line, " ")
	return slices.Contains(words, first)
}

func (g *generator) line(f facts) string {
	switch {
	case g.deleted && g.kept && !f.exists:
		g.kept = false
		return "unfinalizer example.com/mine"
	case g.deleted || !f.exists:
		return ""
	case f.finished:
		return g.afterwards(f)
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

// afterwards is what happens to a Job that is finished.
func (g *generator) afterwards(f facts) string {
	switch {
	case len(f.ending) > 0:
		return g.end(f)
	case g.chance(25):
		return g.delete(f)
	case g.chance(15):
		return pick(g, "suspend", "parallelism 2", "label a=b", "edit backoffLimit 9", "edit ttlSecondsAfterFinished 9000")
	}
	return ""
}

// choices are the possible next steps; likely ones are in the list several times.
func (g *generator) choices(f facts) []func() string {
	var choices []func() string
	add := func(times int, ok bool, choice func() string) {
		if ok {
			choices = append(choices, slices.Repeat([]func() string{choice}, times)...)
		}
	}
	mayFail := g.failures < maxFailures
	indexes := g.spec.CompletionMode != nil
	// It does not matter which of several equal pods is removed, but the views show which
	// index continues.
	settled := !indexes || len(f.pending) == 0
	add(8, len(f.active) > 0, func() string { return g.succeed(f) })
	add(8, len(f.active) > 0 && mayFail, func() string { return g.fail(f) })
	add(4, len(f.active) > 0 && g.spec.Template.Spec.RestartPolicy == "OnFailure", func() string {
		return fmt.Sprintf("restart %s count=%d", g.some(f.active, 2), g.between(1, 2)) + g.container()
	})
	add(2, len(f.active) > 0 && mayFail, func() string {
		g.failures++
		return "remove " + g.some(f.active, 1)
	})
	add(2, len(f.active) > 0 && slices.Contains(g.containers, jobspec.Side), func() string { return "halfway " + g.some(f.active, 2) })
	add(9, len(f.pending) > 0 && g.manual, func() string { return "run " + g.some(f.pending, len(f.pending)) })
	add(5, len(f.ending) > 0, func() string { return g.end(f) })
	add(2, settled, func() string { return fmt.Sprintf("parallelism %d", g.between(0, 5)) })
	add(3, settled && indexes && g.spec.SuccessPolicy == nil, func() string { return fmt.Sprintf("resize %d", g.between(1, 5)) })
	add(2, !f.suspended, func() string { return "suspend" })
	add(10, f.suspended, func() string { return "resume" })
	add(2, !g.held && !g.expire, func() string { g.held = true; return "hold" })
	add(1, true, func() string { return g.delete(f) })
	add(3, true, g.edit)
	add(4, f.suspended, g.editTemplate)
	add(3, !indexes && (g.foreign || g.spec.ManualSelector != nil), func() string { return g.pod("job", "other") })
	add(1, len(f.active) > 0 && settled, func() string {
		g.strays = true
		return "relabel " + g.some(f.active, 1)
	})
	add(4, g.safe(f), func() string { return g.burst(f) })
	return choices
}

func (g *generator) succeed(f facts) string {
	most := len(f.active)
	if g.spec.SuccessPolicy != nil {
		most = 1
	}
	line := "succeed " + g.some(f.active, most)
	if slices.Contains(g.containers, jobspec.Side) && g.chance(30) {
		line += " container=side exit=137"
	}
	return line
}

func (g *generator) delete(f facts) string {
	if !g.kept && g.chance(15) {
		g.kept = true
		return "finalizer example.com/mine"
	}
	line := "delete " + pick(g, "Background", "Foreground", "Orphan")
	if len(f.active) > 0 && !g.kept && g.chance(30) {
		line = pick(g, "succeed ", "fail ") + g.some(f.active, 1) + " & " + line
	}
	if !g.kept && g.chance(25) {
		g.failures, g.held = maxFailures, true
		return line + " & recreate"
	}
	g.deleted = true
	return line
}

// edit changes a field that may be changed, or tries to change another one.
func (g *generator) edit() string {
	lines := []string{
		"label a=b", "edit ttlSecondsAfterFinished 5000", fmt.Sprintf("edit backoffLimit %d", g.between(0, 6)),
		"try edit completionMode " + pick(g, "Indexed", "NonIndexed"), "try image other", "try edit completions 3",
		"try edit podReplacementPolicy " + pick(g, "Failed", "TerminatingOrFailed"),
	}
	for _, f := range jobspec.Fields {
		if f.Edit != nil {
			lines = append(lines, "try edit "+f.Name+" "+f.Edit(jobspec.Source{Rand: g.Rand}))
		}
	}
	if !g.expire {
		lines = append(lines, "edit activeDeadlineSeconds "+pick(g, "null", "90000"))
	}
	return pick(g, lines...)
}

// editTemplate changes the template of a Job that is suspended.
func (g *generator) editTemplate() string {
	return pick(g, "template color=blue", "annotate note=new", "nodeSelector zone=a", "toleration spot", "affinity disk", "cpu 100m")
}

// pod is a pod that another client creates; it may have an owner.
func (g *generator) pod(owners ...string) string {
	line := "pod phase=" + pick(g, "Running", "Succeeded")
	if g.chance(40) {
		line += " tracked=true"
	}
	if g.foreign || g.chance(20) {
		line += " owner=" + pick(g, owners...)
	}
	return line
}

// safe reports whether several things may happen at once without a race: none of them
// can decide how the Job ends, and no pod is replaced because of them.
func (g *generator) safe(f facts) bool {
	return len(f.active) > 1 && f.remaining > 1 && int(f.remaining) <= len(f.active) && g.failures == 0 && !g.foreign && !g.strays &&
		!jobspec.CanEnd(g.spec) && g.spec.CompletionMode != nil
}

// burst does several things at once. The first pods succeed; one is kept for the other
// things.
func (g *generator) burst(f facts) string {
	last := f.active[len(f.active)-1:]
	line := "succeed " + g.some(f.active[:len(f.active)-1], len(f.active)-1)
	switch g.IntN(5) {
	case 0:
		g.failures++
		return line + fmt.Sprintf(" & fail %s exit=%d", g.some(last, 1), pick(g, jobspec.Exits...))
	case 1:
		g.failures++
		return line + " & remove " + g.some(last, 1)
	case 2:
		return line + " & suspend"
	case 3:
		g.strays = true
		return line + " & relabel " + g.some(last, 1)
	}
	return line + " & label a=b & edit ttlSecondsAfterFinished 9000"
}

func (g *generator) end(f facts) string {
	return "end " + g.some(f.ending, len(f.ending)) + " " + pick(g, "failed", "succeeded")
}

// fail concerns one pod at a time, and so does "succeed" with a success policy, because
// a controller may act on the first of several events before the next.
func (g *generator) fail(f facts) string {
	g.failures++
	line := fmt.Sprintf("fail %s exit=%d", g.some(f.active, 1), pick(g, jobspec.Exits...)) + g.container()
	if g.chance(25) {
		line += " condition=DisruptionTarget"
	}
	return line
}

// container names one of the pod's containers, or none, which means the first.
func (g *generator) container() string {
	if g.chance(60) {
		return ""
	}
	return " container=" + pick(g, g.containers...)
}

// some selects between one and most pods, with a selector that has the same meaning on both
// sides.
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
