package specs

import (
	"fmt"
	"slices"
	"strings"
)

// Table renders all results and what was left out, one line a spec, by name, and a line that counts them.
func Table(results []Result, left []Left) string {
	var lines []row
	for _, r := range results {
		lines = append(lines, row{r.Spec, r.word(), fmt.Sprintf("%.1f", r.Seconds), r.Skipped})
	}
	for _, l := range left {
		note := l.Reason
		if len(l.Gates) > 0 {
			note += ": " + strings.Join(l.Gates, ", ")
		}
		lines = append(lines, row{l.Spec, "not run", "-", note})
	}
	slices.SortFunc(lines, func(a, b row) int { return strings.Compare(a.spec.Name(), b.spec.Name()) })

	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %7s  %s\n", "RESULT", "SECONDS", "SPEC (c: Conformance)")
	for _, l := range lines {
		fmt.Fprintln(&b, l)
	}
	b.WriteString(Summary(results, left))
	return b.String()
}

// Summary counts: "43 specs passed, 1 failed, 0 skipped; 1 not run".
func Summary(results []Result, left []Left) string {
	passed, failed, skipped := 0, 0, 0
	for _, r := range results {
		switch {
		case r.Passed:
			passed++
		case r.Skipped != "":
			skipped++
		default:
			failed++
		}
	}
	return fmt.Sprintf("%d specs passed, %d failed, %d skipped; %d not run\n", passed, failed, skipped, len(left))
}

// row is one line of the table.
type row struct {
	spec                  Spec
	result, seconds, note string
}

func (r row) String() string {
	mark := " "
	if r.spec.Conformance {
		mark = "c"
	}
	line := fmt.Sprintf("%-8s %7s  %s %s", r.result, r.seconds, mark, r.spec.Name())
	if r.note != "" {
		line += " (" + strings.TrimSpace(r.note) + ")"
	}
	return line
}

// Line is the result as one line of the table.
func (r Result) Line() string {
	return row{r.Spec, r.word(), fmt.Sprintf("%.1f", r.Seconds), r.Skipped}.String()
}

func (r Result) word() string {
	switch {
	case r.Passed:
		return "ok"
	case r.Skipped != "":
		return "skipped"
	}
	return "FAILED"
}
