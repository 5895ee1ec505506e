package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A target is a value of a figure that this project wants to reach.
type target struct {
	// scenarios is the prefix of the scenarios' names.
	scenarios string
	figure    Figure
	// limit is compared with the figure. If of names a contender, the figure is
	// first divided by that contender's.
	limit float64
	of    string
	// atLeast: the figure must be at least the limit, not at most.
	atLeast bool
}

// targets are all of them, in no particular order.
var targets = []target{
	{scenarios: "S1", figure: LatencyP50, limit: 0.1, of: BuiltIn},
	{scenarios: "S1", figure: StatusWrites, limit: 1, of: BuiltIn},
	{scenarios: "S2", figure: Makespan, limit: 0.8, of: BuiltIn},
	{scenarios: "S2", figure: Makespan, limit: 1.15, of: Floor},
	{scenarios: "S2", figure: StatusWrites, limit: 1, of: BuiltIn},
	{scenarios: "S2", figure: CPUPerPod, limit: 0.5, of: BuiltIn},
	{scenarios: "S3", figure: CeilingShare, limit: 97, atLeast: true},
	{scenarios: "S4", figure: StatusWrites, limit: 1, of: BuiltIn},
	{scenarios: "S4", figure: CPUPerPod, limit: 0.5, of: BuiltIn},
	{scenarios: "S5", figure: Makespan, limit: 0.5, of: BuiltIn},
	{scenarios: "S5", figure: EventsLost, limit: 0},
	{scenarios: "S5", figure: EventsSwapped, limit: 0},
	{scenarios: "S5", figure: EventsAfter, limit: 10},
	{scenarios: "S6", figure: LatencyOverIdle, limit: 2},
	{scenarios: "S8-100000", figure: HeldMemory, limit: 0.4, of: BuiltIn},
	{scenarios: "S8", figure: BytesPerEvent, limit: 64 << 10},
	{scenarios: "S8", figure: EngineP99, limit: 1},
	{scenarios: "S9-suspended", figure: ConflictsAtOnce, limit: 0},
	{scenarios: "S9-suspended", figure: ConflictsLater, limit: 0},
	{scenarios: growthName, figure: CPUGrowth, limit: 2},
	{scenarios: growthName, figure: BytesGrowth, limit: 1.25},
}

func targetsFor(scenario string, f Figure) []target {
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		return t.figure != f || !strings.HasPrefix(scenario, t.scenarios)
	})
}

// String says what is wanted: "≤ 0.8 × built-in".
func (t target) String() string {
	sign := "≤"
	if t.atLeast {
		sign = "≥"
	}
	text := fmt.Sprintf("%s %g", sign, t.limit)
	if t.of != "" {
		text += " × " + t.of
	}
	return text
}

// assess says whether a contender reached the target; empty when a figure is missing. all
// are the results of a scenario, by contender.
func (t target) assess(all map[string]Result, contender string) string {
	value, ok := all[contender].Figures[t.figure]
	if !ok {
		return ""
	}
	if t.of != "" {
		other, ok := all[t.of].Figures[t.figure]
		if !ok || other == 0 {
			return ""
		}
		value /= other
	}
	if value == t.limit || (value > t.limit) == t.atLeast {
		return "met"
	}
	if t.of == "" {
		return "NOT met"
	}
	return fmt.Sprintf("NOT met (%.2f ×)", value)
}

// growthName is the scenario that compares the steady states of Jobs of
// different size.
const growthName = "S8: size"

// growth compares the largest steady state with the smallest, because the cost of an
// event must not depend on the number of pods. nil without two steady states.
func growth(results []Result) []Result {
	byPods := map[int]map[string]Result{}
	for _, r := range results {
		if _, ok := r.Figures[CPUPerEvent]; !ok {
			continue
		}
		if byPods[r.Pods] == nil {
			byPods[r.Pods] = map[string]Result{}
		}
		byPods[r.Pods][r.Contender] = r
	}
	sizes := slices.Sorted(maps.Keys(byPods))
	if len(sizes) < 2 {
		return nil
	}
	small, large := byPods[sizes[0]], byPods[sizes[len(sizes)-1]]
	var out []Result
	for _, c := range contenders() {
		a, b := small[c.name], large[c.name]
		f := Figures{}
		for to, from := range map[Figure]Figure{CPUGrowth: CPUPerEvent, BytesGrowth: BytesPerEvent} {
			if a.Figures[from] > 0 && b.Figures[from] > 0 {
				f[to] = b.Figures[from] / a.Figures[from]
			}
		}
		if len(f) > 0 {
			title := fmt.Sprintf("%s, compared with %s", b.Scenario, a.Scenario)
			out = append(out, Result{Scenario: growthName, Title: title, Contender: c.name, Figures: f})
		}
	}
	return out
}
