package bench

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scenarioResults are the results of one scenario by contender.
type scenarioResults struct {
	name, title, latency string
	by                   map[string]Result
}

// grouped gathers results by scenario, in their order.
func grouped(results []Result) []scenarioResults {
	var groups []scenarioResults
	for _, r := range results {
		at := slices.IndexFunc(groups, func(g scenarioResults) bool { return g.name == r.Scenario })
		if at < 0 {
			at = len(groups)
			groups = append(groups, scenarioResults{name: r.Scenario, title: r.Title, latency: r.Latency, by: map[string]Result{}})
		}
		groups[at].by[r.Contender] = r
	}
	return groups
}

var tableHead = []string{
	"scenario", "figure", BuiltIn, Services, "÷", Embedded, "÷", Floor, "target", Services + " (a)", Embedded + " (a)",
}

// Table renders all figures of all scenarios as one Markdown table that can be
// read in a terminal as well. ÷ is the ratio to the built-in controller; (a) says
// whether the target is met.
func Table(results []Result) string {
	rows := [][]string{tableHead}
	for _, g := range grouped(append(slices.Clone(results), growth(results)...)) {
		for i, row := range g.rows() {
			first := ""
			if i == 0 {
				first = g.name
			}
			rows = append(rows, append([]string{first}, row...))
		}
	}
	return markdown(rows, 2)
}

// Glance renders the ratios of the two services to the built-in controller: one row
// a scenario, one column a plotted figure, clearly lower ratios in bold, and how many
// targets are met.
func Glance(results []Result) string {
	const clearly = 0.95
	head := []string{"scenario"}
	for _, p := range plotted {
		title, _, _ := strings.Cut(textOf(p.Figure).title, ",")
		head = append(head, title)
	}
	rows := [][]string{append(head, "targets met")}
	for _, g := range grouped(results) {
		row := []string{g.name}
		if g.eventsUncounted() {
			row[0] += uncountedMark
		}
		for _, p := range plotted {
			cell := g.ratio(p.Figure, Services)
			if ratio, err := strconv.ParseFloat(cell, 64); err == nil && ratio < clearly {
				cell = "**" + cell + "**"
			}
			row = append(row, cell)
		}
		rows = append(rows, append(row, g.targetsMet()))
	}
	return markdown(rows, 1)
}

// uncountedMark stands behind the name of a scenario whose lost events were not
// counted.
const uncountedMark = " ¹"

// eventsUncounted reports whether the scenario has a target for lost events, but was
// measured without counting them.
func (g scenarioResults) eventsUncounted() bool {
	counted := func(r Result) bool { _, ok := r.Figures[EventsLost]; return ok }
	return len(targetsFor(g.name, EventsLost)) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(g.by)), counted)
}

// eventsNote explains uncountedMark; empty if no scenario has it.
func eventsNote(results []Result) string {
	if !slices.ContainsFunc(grouped(results), scenarioResults.eventsUncounted) {
		return ""
	}
	return "\n¹ These runs did not count lost events. A lost event is an API call that was not made,\n" +
		"so CPU time and makespan are lower than they would be with all events.\n"
}

// targetsMet says how many of the scenario's targets the two services meet; empty without
// any.
func (g scenarioResults) targetsMet() string {
	met, all := 0, 0
	for _, text := range figureTexts {
		for _, t := range targetsFor(g.name, text.Figure) {
			switch t.assess(g.by, Services) {
			case "":
				continue
			case "met":
				met++
			}
			all++
		}
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", met, all)
}

// rows are the rows of the figures that at least one contender has.
func (g scenarioResults) rows() [][]string {
	var rows [][]string
	for _, text := range figureTexts {
		has := func(r Result) bool { _, ok := r.Figures[text.Figure]; return ok }
		if !slices.ContainsFunc(slices.Collect(maps.Values(g.by)), has) {
			continue
		}
		row := []string{text.title, g.value(text, BuiltIn)}
		for _, c := range []string{Services, Embedded} {
			row = append(row, g.value(text, c), g.ratio(text.Figure, c))
		}
		row = append(row, g.value(text, Floor))
		rows = append(rows, append(row, g.targetCells(text.Figure)...))
	}
	return rows
}

func (g scenarioResults) value(text figureText, contender string) string {
	value, ok := g.by[contender].Figures[text.Figure]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.*f", text.digits, value)
}

func (g scenarioResults) ratio(f Figure, contender string) string {
	value, ok := g.by[contender].Figures[f]
	base := g.by[BuiltIn].Figures[f]
	if !ok || base == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", value/base)
}

// targetCells are the last three cells: the targets, and whether they are met.
func (g scenarioResults) targetCells(f Figure) []string {
	cells := make([][]string, 3)
	for _, t := range targetsFor(g.name, f) {
		cells[0] = append(cells[0], t.String())
		cells[1] = append(cells[1], t.assess(g.by, Services))
		cells[2] = append(cells[2], t.assess(g.by, Embedded))
	}
	row := make([]string, 3)
	for i, parts := range cells {
		row[i] = strings.Join(parts, "; ")
	}
	return row
}

// CallsTable renders the API calls a pod by verb and resource.
func CallsTable(results []Result) string {
	names := []string{BuiltIn, Services, Embedded, Floor}
	rows := [][]string{append([]string{"scenario", "call"}, names...)}
	for _, g := range grouped(results) {
		kinds := map[string]bool{}
		for _, r := range g.by {
			for kind := range r.Calls {
				kinds[kind] = true
			}
		}
		first := g.name
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			row := []string{first, kind}
			for _, name := range names {
				row = append(row, callsPerPod(g.by, name, kind))
			}
			rows, first = append(rows, row), ""
		}
	}
	return markdown(rows, 2)
}

func callsPerPod(by map[string]Result, contender, kind string) string {
	r, ok := by[contender]
	if !ok || r.Calls[kind] == 0 {
		return ""
	}
	return fmt.Sprintf("%.4f", float64(r.Calls[kind])/float64(r.Pods))
}

// ScenarioList renders name, title and latency of each scenario.
func ScenarioList(results []Result) string {
	var out strings.Builder
	for _, g := range grouped(results) {
		fmt.Fprintf(&out, "- **%s**: %s. Latency: %s.\n", g.name, g.title, g.latency)
	}
	return out.String()
}

// markdown renders rows, of which the first is the head, with columns of equal
// width. The first columns, left of them, are text; the others stand to the right.
func markdown(rows [][]string, left int) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell), 2)
		}
	}
	var out strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			space := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i < left {
				out.WriteString("| " + cell + space + " ")
				continue
			}
			out.WriteString("| " + space + cell + " ")
		}
		out.WriteString("|\n")
		if n == 0 {
			for i, w := range width {
				if i < left {
					out.WriteString("|" + strings.Repeat("-", w+2))
					continue
				}
				out.WriteString("|" + strings.Repeat("-", w+1) + ":")
			}
			out.WriteString("|\n")
		}
	}
	return out.String()
}
