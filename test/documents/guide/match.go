package guide

import (
	"fmt"
	"regexp"
	"strings"
)

// ellipsis stands for what a page leaves out.
const ellipsis = "…"

// Match compares what a command printed with what the page says, and returns an
// error that names the first line of want that got does not have.
func Match(want, got string) error {
	rest, anywhere := nonEmptyLines(got), false
	for _, line := range nonEmptyLines(want) {
		if line == ellipsis {
			anywhere = true
			continue
		}
		at := find(rest, pattern(line), anywhere)
		if at < 0 {
			return fmt.Errorf("the page expects the line %q; after what matched there is:\n%s", line, strings.Join(rest, "\n"))
		}
		rest, anywhere = rest[at+1:], false
	}
	if len(rest) > 0 && !anywhere {
		return fmt.Errorf("the page does not expect the last lines:\n%s", strings.Join(rest, "\n"))
	}
	return nil
}

// find returns the index of the first line that matches; only the first line is
// asked unless anywhere is set. -1: none.
func find(lines []string, p *regexp.Regexp, anywhere bool) int {
	for i, line := range lines {
		if p.MatchString(line) {
			return i
		}
		if !anywhere {
			break
		}
	}
	return -1
}

func pattern(line string) *regexp.Regexp {
	parts := strings.Split(line, ellipsis)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
}

// nonEmptyLines returns the lines that hold something, with single blanks.
func nonEmptyLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return lines
}
