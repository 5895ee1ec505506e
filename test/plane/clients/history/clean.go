package history

import (
	"regexp"
	"strings"
)

// What stands for text that differs from run to run. A rule applies to what those before it left.
var replacements = []struct {
	found *regexp.Regexp
	by    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?Z| ?[+-]\d\d:?\d\d)?`), "TIME"},
	// The end of generated names has no vowel and none of 0, 1 and 3.
	{regexp.MustCompile(`([a-z0-9])-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "$1-~"},
	// The name of a Workload ends with a hash of its owner.
	{regexp.MustCompile(`\b((?:job|jobset)-[a-z0-9-]+)-[0-9a-f]{5}\b`), "$1-~"},
}

// Clean replaces what differs from run to run: UIDs, times, and random ends of names.
func Clean(text string) string {
	for _, r := range replacements {
		text = r.found.ReplaceAllString(text, r.by)
	}
	return strings.TrimSpace(text)
}
