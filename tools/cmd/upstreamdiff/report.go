package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// report prints what changed in an area, and who follows it here.
func report(w io.Writer, root string, a area, changes []change, verbose bool) {
	fmt.Fprintf(w, "\n%s (%s)\n", a.title, a.module)
	for _, path := range a.by {
		missing := ""
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			missing = " (is not there: correct follow.go)"
		}
		fmt.Fprintf(w, "  followed by %s%s\n", path, missing)
	}
	if len(changes) == 0 {
		fmt.Fprintln(w, "  no change")
	}
	for _, c := range changes {
		shown, sign, lines := c.shown()
		fmt.Fprintf(w, "  %s %-60s %s\n", sign, shown.name, shown.file)
		if verbose {
			for _, line := range lines {
				fmt.Fprintf(w, "      %s\n", line)
			}
		}
	}
}

// shown is the declaration to name, the sign of the change, and the lines that it removed and
// added.
func (c change) shown() (d *declaration, sign string, lines []string) {
	switch {
	case c.before == nil:
		return c.after, "+", marked("+", strings.Split(c.after.text, "\n"))
	case c.after == nil:
		return c.before, "-", marked("-", strings.Split(c.before.text, "\n"))
	}
	return c.after, "~", differing(strings.Split(c.before.text, "\n"), strings.Split(c.after.text, "\n"))
}

func marked(sign string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = sign + " " + line
	}
	return out
}

// differing are the lines that only one of two texts has, in order: a longest common subsequence
// is left out.
func differing(before, after []string) []string {
	common := make([][]int, len(before)+1)
	for i := range common {
		common[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var lines []string
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			i, j = i+1, j+1
		case j == len(after) || i < len(before) && common[i+1][j] >= common[i][j+1]:
			lines, i = append(lines, "- "+before[i]), i+1
		default:
			lines, j = append(lines, "+ "+after[j]), j+1
		}
	}
	return lines
}
