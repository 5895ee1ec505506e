package history

import (
	"fmt"
	"regexp"
	"slices"
)

// A Difference is one way in which histories may differ.
type Difference struct {
	// Name is that of the row in services/differences if the product behaves in two ways. If the client does, it is a name
	// of its own, and Reason says why.
	Name, Reason string
	// Scenario matches the names of the scenarios that may show it; nil: all.
	Scenario *regexp.Regexp
	// Builtin and Ours match the lines that only the one side has; nil: it has none.
	Builtin, Ours *regexp.Regexp
	// Sign matches a line that one of the sides has whenever the difference shows; nil: no line tells.
	Sign *regexp.Regexp
	// Race: it shows only sometimes, because timing decides. Any other one that shows nowhere is
	// itself a failure.
	Race bool
}

// shows reports whether the difference may show in a scenario in which both sides differ by these changes.
func (d Difference) shows(scenario string, changes []change) bool {
	here := d.Scenario == nil || d.Scenario.MatchString(scenario)
	return here && (d.Sign == nil || slices.ContainsFunc(changes, func(c change) bool { return d.Sign.MatchString(c.line) }))
}

func (d Difference) explains(c change) bool {
	pattern := d.Builtin
	if c.ours {
		pattern = d.Ours
	}
	return pattern != nil && pattern.MatchString(c.line)
}

// A Comparison gathers what a list of differences explains.
type Comparison struct {
	Differences []Difference
	// shown are the scenarios that showed a difference, by its name.
	shown map[string][]string
}

// Compare returns the lines that only one side has and that no difference explains: those of the
// built-in controllers with "-", ours with "+".
func (c *Comparison) Compare(scenario string, builtin, ours []string) []string {
	var left []string
	changes := diff(builtin, ours)
	for _, change := range changes {
		i := slices.IndexFunc(c.Differences, func(d Difference) bool { return d.shows(scenario, changes) && d.explains(change) })
		if i < 0 {
			left = append(left, change.String())
			continue
		}
		c.note(c.Differences[i].Name, scenario)
	}
	return left
}

func (c *Comparison) note(name, scenario string) {
	if c.shown == nil {
		c.shown = map[string][]string{}
	}
	if !slices.Contains(c.shown[name], scenario) {
		c.shown[name] = append(c.shown[name], scenario)
	}
}

// Summary says of each difference in which scenarios it showed.
func (c *Comparison) Summary() []string {
	var lines []string
	for _, d := range c.Differences {
		lines = append(lines, fmt.Sprintf("%s: showed in %d scenarios %v", d.Name, len(c.shown[d.Name]), c.shown[d.Name]))
	}
	return lines
}

// Unused names the differences that showed nowhere and are no race. played are the scenarios that were compared.
func (c *Comparison) Unused(played []string) []string {
	var names []string
	for _, d := range c.Differences {
		if !d.Race && len(c.shown[d.Name]) == 0 && (d.Scenario == nil || slices.ContainsFunc(played, d.Scenario.MatchString)) {
			names = append(names, d.Name)
		}
	}
	return names
}

// A change is a line that only one side has.
type change struct {
	line string
	ours bool
}

func (c change) String() string {
	if c.ours {
		return "+ " + c.line
	}
	return "- " + c.line
}

// diff returns the lines that are not in the longest common subsequence.
func diff(a, b []string) []change {
	// common[i][j] is the length of that of a[i:] and b[j:].
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var changes []change
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			changes = append(changes, change{line: a[i]})
			i++
		default:
			changes = append(changes, change{line: b[j], ours: true})
			j++
		}
	}
	return changes
}
