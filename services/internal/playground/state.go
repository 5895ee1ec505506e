package playground

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobpolicy.dev/engine/simulate"
)

// The largest Job that the page plays, and the largest manifest that it reads: the browser
// does not react meanwhile. The command has no such limits.
const (
	MaxPods     = 1000
	maxManifest = 256 << 10
)

// start is the wall-clock time at which every play begins. The page does not show it.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// A State is the page's input. A link to the page contains it.
type State struct {
	// Manifest is a Job or CronJob in YAML or JSON.
	Manifest string `json:"manifest"`
	// Script has a line for each thing that happens: a flag of the command kubectl
	// jobpolicy simulate without its dashes.
	Script string `json:"script"`
	// Runtime, FailRate and Seed are the flags of the same names. Empty: the default.
	Runtime  string `json:"runtime"`
	FailRate string `json:"failRate"`
	Seed     string `json:"seed"`
	// Now is the time for which a CronJob is shown, LastRun the time of its last run. If
	// LastRun is empty, nothing is said about missed runs. Zone is the zone of a schedule
	// that names none.
	Now     string `json:"now"`
	LastRun string `json:"lastRun"`
	Zone    string `json:"zone"`
}

// A Problem says why a state cannot be played.
type Problem struct {
	// Field is the field of the page: manifest, script, runtime and so on.
	Field string `json:"field"`
	// Line is the line in the field's text; 0: unknown.
	Line int `json:"line,omitempty"`
	// Path is the field of the manifest, if one is wrong.
	Path string `json:"path,omitempty"`
	// Text says what is wrong and what was expected.
	Text string `json:"text"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Field + ": " + p.Text }

func problem(field, text string) *Problem { return &Problem{Field: field, Text: text} }

// scenario is the scenario of the state, without the Job.
func (s State) scenario() (simulate.Scenario, *Problem) {
	sc := simulate.Scenario{Start: start, Seed: 1, MaxPods: MaxPods, Moments: true}
	var err error
	if s.Runtime != "" {
		if sc.Runtime, err = simulate.ParseRuntime(s.Runtime); err != nil {
			return sc, problem("runtime", err.Error())
		}
	}
	if s.FailRate != "" {
		sc.FailRate, err = strconv.ParseFloat(s.FailRate, 64)
		if err != nil || !(sc.FailRate >= 0 && sc.FailRate <= 1) {
			return sc, problem("failRate", fmt.Sprintf("expected a share from 0 to 1, such as 0.1, got %q", s.FailRate))
		}
	}
	if s.Seed != "" {
		if sc.Seed, err = strconv.ParseUint(s.Seed, 10, 64); err != nil {
			return sc, problem("seed", fmt.Sprintf("expected a whole number from 0 on, got %q", s.Seed))
		}
	}
	for i, line := range strings.Split(s.Script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := addLine(&sc, line); err != nil {
			return sc, &Problem{Field: "script", Line: i + 1, Text: err.Error()}
		}
	}
	if err := sc.CheckNode(); err != nil {
		return sc, problem("script", "node-back-at: "+err.Error())
	}
	return sc, nil
}

// addLine adds one line of the script to a scenario.
func addLine(sc *simulate.Scenario, line string) error {
	what, value, _ := strings.Cut(line, " ")
	value = strings.TrimSpace(value)
	suspend := what == "suspend-at"
	switch what {
	case "pod":
		s, err := simulate.ParseScript(value)
		sc.Scripts = append(sc.Scripts, s)
		return err
	case "scale":
		c, err := simulate.ParseScale(value)
		for _, n := range []*int32{c.Parallelism, c.Completions} {
			if n != nil && *n > MaxPods {
				return fmt.Errorf("expected at most %d pods on this page, got %d", MaxPods, *n)
			}
		}
		sc.Changes = append(sc.Changes, c)
		return err
	case "suspend-at", "resume-at":
		at, err := parseAt(value)
		sc.Changes = append(sc.Changes, simulate.Change{At: at, Suspend: &suspend})
		return err
	case "delete-at":
		at, err := parseAt(value)
		sc.Changes = append(sc.Changes, simulate.Change{At: at, Delete: true})
		return err
	}
	if at := map[string]*time.Duration{"quota-until": &sc.QuotaUntil, "node-lost-at": &sc.NodeLost, "node-back-at": &sc.NodeBack}[what]; at != nil {
		var err error
		*at, err = parseAt(value)
		return err
	}
	return fmt.Errorf("expected pod, scale, suspend-at, resume-at, delete-at, quota-until, node-lost-at or node-back-at in front, got %q", what)
}

func parseAt(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("expected a duration above 0, such as 30s or 1h30m, got %q", text)
	}
	return d, nil
}

// times reads Now and LastRun.
func (s State) times() (now, lastRun time.Time, bad *Problem) {
	if now, bad = parseTime("now", s.Now); bad != nil {
		return now, lastRun, bad
	}
	if now.IsZero() {
		return now, lastRun, problem("now", "is required: expected a time such as 2026-03-28T00:00:00Z")
	}
	if lastRun, bad = parseTime("lastRun", s.LastRun); bad != nil {
		return now, lastRun, bad
	}
	if lastRun.After(now) {
		return now, lastRun, problem("lastRun", "expected a time that is not after now")
	}
	return now, lastRun, nil
}

func parseTime(field, text string) (time.Time, *Problem) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 && at.Year() < 2200 {
			return at, nil
		}
	}
	return time.Time{}, problem(field, fmt.Sprintf("expected a time such as 2026-03-28T00:00:00Z, or a day such as 2026-03-28, of the years 1970 to 2199, got %q", text))
}
