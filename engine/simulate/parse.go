package simulate

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// expectedScript is part of the error for a script that cannot be read.
const expectedScript = "expected PODS[/CONTAINER]:OUTCOME[@DURATION][,OUTCOME…] with an index, a range such as 0-4, or * for PODS, " +
	"and succeed, fail, fail(EXITCODE), oom, evict, hang or stuck for OUTCOME"

var outcomeForm = regexp.MustCompile(`^([a-z]+)(?:\(([^)]*)\))?(?:@(.+))?$`)

// ParseScript reads a script such as 0:fail(42)@30s,succeed or *:evict@1m, or 0/setup:fail
// for a certain container.
func ParseScript(text string) (Script, error) {
	pods, outcomes, ok := strings.Cut(text, ":")
	if !ok {
		return Script{}, fmt.Errorf("%q: %s", text, expectedScript)
	}
	pods, container, named := strings.Cut(pods, "/")
	if named && container == "" {
		return Script{}, fmt.Errorf("%q: %s", text, expectedScript)
	}
	s := Script{Container: container}
	var err error
	if s.First, s.Last, err = parsePods(pods); err != nil {
		return Script{}, err
	}
	for part := range strings.SplitSeq(outcomes, ",") {
		o, err := parseOutcome(strings.TrimSpace(part))
		if err != nil {
			return Script{}, err
		}
		s.Outcomes = append(s.Outcomes, o)
	}
	return s, nil
}

func parsePods(text string) (first, last int32, err error) {
	if text == "*" {
		return 0, -1, nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	a, err1 := strconv.ParseInt(from, 10, 32)
	b, err2 := strconv.ParseInt(to, 10, 32)
	if err1 != nil || err2 != nil || a < 0 || b < a {
		return 0, 0, fmt.Errorf("%q: expected an index, a range such as 0-4, or * for all pods", text)
	}
	return int32(a), int32(b), nil
}

func parseOutcome(text string) (Outcome, error) {
	m := outcomeForm.FindStringSubmatch(text)
	if m == nil {
		return Outcome{}, fmt.Errorf("%q: %s", text, expectedScript)
	}
	endings := map[string]Ending{"succeed": Succeeds, "fail": Fails, "oom": Fails, "evict": Evicted, "hang": Hangs, "stuck": NeverStarts}
	ending, ok := endings[m[1]]
	if !ok {
		return Outcome{}, fmt.Errorf("%q: %s", text, expectedScript)
	}
	o := Outcome{Ending: ending}
	switch m[1] {
	case "fail":
		o.ExitCode = 1
	case "oom":
		o.ExitCode, o.OutOfMemory = exitKilled, true
	}
	if strings.Contains(text, "(") {
		code, err := strconv.ParseInt(m[2], 10, 32)
		if m[1] != "fail" || err != nil || code < 1 || code > 255 {
			return Outcome{}, fmt.Errorf("%q: expected fail(EXITCODE) with an exit code from 1 to 255", text)
		}
		o.ExitCode = int32(code)
	}
	if m[3] == "" {
		return o, nil
	}
	after, err := parsePositive(m[3])
	if err != nil {
		return Outcome{}, err
	}
	if ending == Hangs || ending == NeverStarts {
		return Outcome{}, fmt.Errorf("%q: a pod that does not end has no duration", text)
	}
	o.After = after
	return o, nil
}

func parsePositive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: expected a duration above 0, such as 30s or 1h30m", text)
	}
	return d, nil
}

// ParseRuntime reads a duration and, if given, its variation: 5m or 5m±1m (or 5m+-1m
// on a keyboard without ±).
func ParseRuntime(text string) (Runtime, error) {
	mean, spread, varies := strings.Cut(strings.Replace(text, "+-", "±", 1), "±")
	var r Runtime
	var err error
	if r.Mean, err = parsePositive(mean); err != nil {
		return Runtime{}, fmt.Errorf("%q: expected a duration such as 5m, or 5m±1m", text)
	}
	if !varies {
		return r, nil
	}
	if r.Spread, err = parsePositive(spread); err != nil || r.Spread > r.Mean {
		return Runtime{}, fmt.Errorf("%q: expected a duration such as 5m, or 5m±1m with at most that much after the ±", text)
	}
	return r, nil
}

// String is the notation that ParseRuntime reads.
func (r Runtime) String() string {
	if r.Spread == 0 {
		return withoutDays(r.Mean)
	}
	return withoutDays(r.Mean) + "±" + withoutDays(r.Spread)
}

// withoutDays writes a duration in Go's notation, without zeros at the end: 25h, 1m30s.
func withoutDays(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

const expectedScale = "expected PARALLELISM@DURATION, or parallelism=N,completions=N@DURATION"

// ParseScale reads a change of size: 5@30s sets parallelism; an elastic Indexed Job
// is resized by parallelism=5,completions=5@30s.
func ParseScale(text string) (Change, error) {
	sizes, at, ok := strings.Cut(text, "@")
	if !ok {
		return Change{}, fmt.Errorf("%q: %s", text, expectedScale)
	}
	when, err := parsePositive(at)
	if err != nil {
		return Change{}, fmt.Errorf("%q: after the @: %w", text, err)
	}
	c := Change{At: when}
	for part := range strings.SplitSeq(sizes, ",") {
		name, value, named := strings.Cut(part, "=")
		if !named {
			name, value = "parallelism", part
		}
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			return Change{}, fmt.Errorf("%q: %s", text, expectedScale)
		}
		size := int32(n)
		switch name {
		case "parallelism":
			c.Parallelism = &size
		case "completions":
			c.Completions = &size
		default:
			return Change{}, fmt.Errorf("%q: %s", text, expectedScale)
		}
	}
	return c, nil
}

func (s Script) pods() string {
	switch {
	case s.Last < s.First:
		return "*"
	case s.Last == s.First:
		return strconv.Itoa(int(s.First))
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// Clock writes a duration as people do: 1h30m, 10s, 1m30.5s; no zero parts, and no
// more than milliseconds.
func Clock(d time.Duration) string {
	if d < 0 {
		return "-" + Clock(-max(d, -math.MaxInt64)) // The least duration has no positive counterpart.
	}
	d = d.Round(time.Millisecond)
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	if days := d / (24 * time.Hour); days > 0 {
		fmt.Fprintf(&b, "%dd", days)
		d %= 24 * time.Hour
	}
	if h := d / time.Hour; h > 0 {
		fmt.Fprintf(&b, "%dh", h)
		d %= time.Hour
	}
	if m := d / time.Minute; m > 0 {
		fmt.Fprintf(&b, "%dm", m)
		d %= time.Minute
	}
	if d > 0 {
		b.WriteString(strconv.FormatInt(int64(d/time.Second), 10))
		if ms := d % time.Second / time.Millisecond; ms > 0 {
			b.WriteString("." + strings.TrimRight(fmt.Sprintf("%03d", ms), "0"))
		}
		b.WriteString("s")
	}
	return b.String()
}
