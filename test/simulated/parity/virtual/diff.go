package virtual

import (
	"slices"
	"strings"
)

// Difference shows what was seen under both controllers in one list: "-" built-in only, "+" ours only.
func Difference(builtin, ours []string) string {
	var out []string
	for _, line := range builtin {
		mark := "  "
		if !slices.Contains(ours, line) {
			mark = "- "
		}
		out = append(out, mark+line)
	}
	for _, line := range ours {
		if !slices.Contains(builtin, line) {
			out = append(out, "+ "+line)
		}
	}
	return "    " + strings.Join(out, "\n    ")
}
