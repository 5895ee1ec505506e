package world

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"jobpolicy.dev/services/differences"
)

// An alarm is one kind of thing that judges found of Kubernetes' own controllers: a rule, and what
// was said of it without the names and the numbers of one world.
type alarm struct {
	worlds   int
	smallest uint64 // The smallest seed of a world with it.
	example  string // What was said there.
}

// alarms has the kinds of alarms of many worlds.
type alarms map[string]alarm

var (
	// ofBreach has the groups rule and text of a breach.
	ofBreach = regexp.MustCompile(`^\S+ (\S+) \S* \(.*?\): (.*)`)
	// special is what differs from world to world.
	special = regexp.MustCompile(`\b(job|hog|small|cron|planned|pod|executor)-[a-z0-9-]+|\b[0-9a-f]{8}-[0-9a-f-]+|[0-9]+(\.[0-9]+)?[a-zµ]*|\[[^]]*\]`)
)

// kindLength is how much of a text decides which kind of alarm it is.
const kindLength = 110

// alarmKind is the kind of a breach, from its text.
func alarmKind(breach string) string {
	parts := ofBreach.FindStringSubmatch(strings.ReplaceAll(breach, "\n", " "))
	if parts == nil {
		return breach
	}
	text := strings.TrimPrefix(special.ReplaceAllString(parts[2], "…"), "… ")
	return parts[1] + " " + strings.ToValidUTF8(text[:min(len(text), kindLength)], "")
}

// add counts the breaches of one world.
func (a alarms) add(seed uint64, breaches []string) {
	seen := map[string]bool{}
	for _, b := range breaches {
		kind := alarmKind(b)
		if seen[kind] {
			continue
		}
		seen[kind] = true
		known := a[kind]
		if known.worlds == 0 || seed < known.smallest {
			known.smallest, known.example = seed, b
		}
		known.worlds++
		a[kind] = known
	}
}

// String lists the alarms, the most frequent first, with the row of the table of differences that
// explains it, if there is one.
func (a alarms) String() string {
	kinds := slices.SortedFunc(maps.Keys(a), func(x, y string) int {
		return cmp.Or(cmp.Compare(a[y].worlds, a[x].worlds), cmp.Compare(x, y))
	})
	var out strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&out, "%6d worlds, the first is %d: %s\n", a[kind].worlds, a[kind].smallest, kind)
		if row := explained(kind); row != "" {
			fmt.Fprintf(&out, "       difference %s: %s\n", row, differences.Find(row).What)
			continue
		}
		fmt.Fprintf(&out, "       %s\n", a[kind].example)
	}
	return out.String()
}

// explaining has the alarms that follow from a deliberate difference of ours: a part of the kind, and
// the row of services/differences. They are no findings.
var explaining = []struct{ part, row string }{
	{"nothing asks for its end: not its Job's suspension", "verdict-first"},
	{"after the Job was created that it is suspended", "created-suspended"},
	{"it is deleted with its Job", "deleted-with-its-job"},
	{"a work queue that is being deleted", "deleted-work-queue"},
	{"and no event tells it", "events-in-a-burst"},
	{"before the retry delay had passed", "retry-delay-after-restart"},
}

// explained is the row of the difference that explains a kind of alarm; empty if none does.
func explained(kind string) string {
	for _, e := range explaining {
		if strings.Contains(kind, e.part) {
			return e.row
		}
	}
	return ""
}
