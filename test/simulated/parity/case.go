package parity

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
)

// A Case is one Job and what happens to it.
type Case struct {
	Name string
	// Job is the Job's name; empty means "job".
	Job  string
	Spec batchv1.JobSpec
	// Before is done before the Job is created: it adds pods that exist already.
	Before string
	// Steps are done in order. The sides are compared before the first step and after
	// each.
	Steps []string
	// Manual: only a step starts pods.
	Manual bool
	// Restarts: the controllers are killed and restarted at random moments.
	Restarts bool
	// generated: the API server may refuse a step. next chooses the next step from the
	// current state; nil if all steps are known.
	generated bool
	next      func(facts) string
	// seed of the random choices during the play.
	seed uint64
	// specChanged: the spec is no longer the one of the case with this name or seed.
	specChanged bool
}

// String is the case as text for people.
func (c *Case) String() string {
	spec := c.Spec.DeepCopy()

	body, err := json.Marshal(spec)
	if err != nil {
		return err.Error()
	}
	manual := ""
	if c.Manual {
		manual = " (manual)"
	}
	short := strings.NewReplacer(`,"template":{"metadata":{},"spec":{"containers":null,"restartPolicy":"Never"}}`, "",
		`"template":{"metadata":{},"spec":{"containers":null,"restartPolicy":"OnFailure"}}`, `"restartPolicy":"OnFailure"`).Replace(string(body))
	return fmt.Sprintf("case %s%s\n  spec: %s\n  steps: %s", c.Name, manual, short, strings.Join(c.Steps, "; "))
}

// inRestarts reports whether the controllers are restarted in the case.
func (c *Case) inRestarts() bool {
	return c.Restarts || slices.ContainsFunc(c.Steps, func(line string) bool { return strings.Contains(line, "crash") })
}

// A step is one parsed step.
type step struct {
	verb string
	// try: both sides may refuse it.
	try     bool
	pods    selector
	words   []string // the words behind the verb, without PODS and options
	options map[string]string
}

// verbs that are followed by PODS.
var podVerbs = []string{"succeed", "fail", "halfway", "restart", "run", "remove", "end", "relabel"}

// parseLine parses the steps of one line, which run directly after each other.
func parseLine(line string) ([]step, error) {
	var steps []step
	for _, part := range strings.Split(line, "&") {
		st, err := parseStep(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		steps = append(steps, st)
	}
	return steps, nil
}

func parseStep(line string) (step, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return step{}, fmt.Errorf("empty step")
	}
	st := step{verb: words[0], options: map[string]string{}}
	words = words[1:]
	if st.verb == "try" && len(words) > 0 {
		st.try, st.verb, words = true, words[0], words[1:]
	}
	if slices.Contains(podVerbs, st.verb) {
		if len(words) == 0 {
			return step{}, fmt.Errorf("step %q: which pods?", line)
		}
		var err error
		if st.pods, err = parseSelector(words[0]); err != nil {
			return step{}, fmt.Errorf("step %q: %w", line, err)
		}
		words = words[1:]
	}
	for _, word := range words {
		if key, value, ok := strings.Cut(word, "="); ok {
			st.options[key] = value
			continue
		}
		st.words = append(st.words, word)
	}
	return st, nil
}

// A selector names pods in a way that has the same meaning on both sides.
type selector struct {
	all     bool
	count   int
	indexes []int
}

func parseSelector(word string) (selector, error) {
	if word == "*" {
		return selector{all: true}, nil
	}
	list, ok := strings.CutPrefix(word, "#")
	if !ok {
		var s selector
		_, err := fmt.Sscanf(word, "%d", &s.count)
		return s, err
	}
	var s selector
	for _, part := range strings.Split(list, ",") {
		var index int
		if _, err := fmt.Sscanf(part, "%d", &index); err != nil {
			return s, err
		}
		s.indexes = append(s.indexes, index)
	}
	return s, nil
}

// choose selects from handles, which are sorted by index and class.
func (s selector) choose(handles []handle) []handle {
	switch {
	case s.all:
		return handles
	case s.indexes == nil:
		return handles[:min(s.count, len(handles))]
	}
	var chosen []handle
	for _, h := range handles {
		if slices.Contains(s.indexes, h.index) {
			chosen = append(chosen, h)
		}
	}
	return chosen
}

// seeded is the random source of a generated case.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6a6f62)) }
