package engine_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// TestScenarios replays testdata. A file tells the story of one or more Jobs:
// the lines of a directive's input say what is seen (see scene.tell), and the
// output is the engine's whole answer. After a change of the engine, run with
// -rewrite and read the diff.
//
//	decide          tell the input, decide, print the decision
//	decide apply    the same, then carry the decision out
//	run rounds=n    decide and carry out until nothing is left to do; a line a round
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := newScene()
			datadriven.RunTest(t, path, s.directive)
			s.cases.check(t, filepath.Base(path))
		})
	}
}

func (s *scene) directive(t *testing.T, d *datadriven.TestData) string {
	for _, line := range strings.Split(d.Input, "\n") {
		if err := s.tell(line); err != nil {
			d.Fatalf(t, "%s: %v", line, err)
		}
	}
	switch d.Cmd {
	case "decide":
		return s.decide(d.HasArg("apply"))
	case "run":
		rounds := 20
		d.MaybeScanArgs(t, "rounds", &rounds)
		return s.run(rounds)
	}
	d.Fatalf(t, "unknown directive %s", d.Cmd)
	return ""
}

func (s *scene) decide(apply bool) string {
	resp, err := s.ask()
	if err != nil {
		return renderError(err)
	}
	text := render(resp)
	if resp.GetStatus() == nil {
		text += "(status unchanged)\n"
	}
	if apply {
		text += s.apply(resp)
	}
	return text
}

// run tells a story: a line a round, until a decision asks for nothing.
func (s *scene) run(rounds int) string {
	var b strings.Builder
	for round := 1; round <= rounds; round++ {
		resp, err := s.ask()
		if err != nil {
			return b.String() + renderError(err)
		}
		fmt.Fprintf(&b, "%d %s: %s\n", round, strings.TrimPrefix(resp.GetDisposition().String(), "DISPOSITION_"),
			resp.GetExplanation().GetSummary())
		for _, e := range resp.GetEvents() {
			fmt.Fprintf(&b, "    event %s\n", inlineMessage(e.ProtoReflect()))
		}
		if resp.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
			break
		}
		b.WriteString("    " + s.apply(resp))
	}
	b.WriteString("status:\n")
	renderFields(&b, s.req.GetStatus().ProtoReflect(), "  ")
	return b.String()
}

func renderError(err error) string {
	var invalid *engine.InvalidRequestError
	if !errors.As(err, &invalid) {
		return fmt.Sprintf("error: %v\n", err)
	}
	var b strings.Builder
	for _, v := range invalid.Violations {
		fmt.Fprintf(&b, "invalid %s: %s\n", v.Field, v.Description)
	}
	return b.String()
}
