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
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Z0-9][a-z0-9]+ [A-Z0-9 ][a-z0-9]+ [0-9: ]{12,}\d( [+-]\d{4})?`), "TIME"},
	// The end of generated names has no vowel and none of 0, 1 and 3. It may look like a duration: a-2m45s.
	{regexp.MustCompile(`([a-z0-9])-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "$1-~"},
	{regexp.MustCompile(`~-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "~-~"}, // a pod of a Job with such a name
	// K9s ends the name of a Job that it starts by hand with three such letters.
	{regexp.MustCompile(`-manual-[bcdfghjklmnpqrstvwxz2456789]{3}\b`), "-manual-~"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b`), "DURATION"},
	{regexp.MustCompile(`  +`), "  "},
	// The name of a Workload ends with a hash of its owner.
	{regexp.MustCompile(`\b((?:job|jobset|trainjob)-[a-z0-9-]+)-[0-9a-f]{5}\b`), "$1-~"},
}

// Clean replaces what differs from run to run: UIDs, times, random ends of names, and how wide columns
// are.
func Clean(text string) string {
	for _, r := range replacements {
		text = r.found.ReplaceAllString(text, r.by)
	}
	return strings.TrimSpace(text)
}
