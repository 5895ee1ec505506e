package parity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"jobpolicy.dev/services/differences"
)

// summary is the table of coverage: each feature by each end.
func summary(results []result) string {
	features, ends, known := map[string]map[string]int{}, map[string]bool{}, map[string]int{}
	failed, races := 0, 0
	for _, r := range results {
		if r.race != "" {
			races++
		}
		if r.problem != "" {
			failed++
		}
		for _, name := range r.known {
			known[name]++
		}
		ends[r.end] = true
		for feature, has := range r.c.features() {
			if !has {
				continue
			}
			if features[feature] == nil {
				features[feature] = map[string]int{}
			}
			features[feature][r.end]++
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d cases, %d with differences that are not on the list, %d with a race that the built-in side runs our way if it sees things later\n\n",
		len(results), failed, races)
	columns := slices.Sorted(maps.Keys(ends))
	for i, end := range columns {
		fmt.Fprintf(&out, "  (%c) %s\n", 'a'+i, end)
	}
	fmt.Fprintf(&out, "\n%-44s %5s", "feature", "cases")
	for i := range columns {
		fmt.Fprintf(&out, "%5c", 'a'+i)
	}
	out.WriteString("\n")
	for _, feature := range slices.Sorted(maps.Keys(features)) {
		total, cells := 0, ""
		for _, end := range columns {
			n := features[feature][end]
			total += n
			cells += fmt.Sprintf("%5s", dash(n))
		}
		fmt.Fprintf(&out, "%-44s %5d%s\n", feature, total, cells)
	}
	for _, d := range Differences() {
		row := differences.Find(d.Row)
		fmt.Fprintf(&out, "\ndeliberate difference %q: seen in %d cases\n  %s: built-in: %s; here: %s\n", d.Row, known[d.Row], row.What, row.BuiltIn, row.Here)
	}
	return out.String()
}

func dash(n int) string {
	if n == 0 {
		return "."
	}
	return fmt.Sprint(n)
}
