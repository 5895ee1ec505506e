package engine_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// TestScenarios replays testdata. A file describes the life of one or more Jobs: the input
// of a directive changes the snapshot (see scene.tell), and the output is the engine's
// whole answer. After a change of the engine, run with -rewrite and read the diff.
//
//	decide          tell the input, decide, print the decision
//	decide apply    the same, then carry the decision out
//	brief           tell the input, decide, print the follow-up and the summary
//	end             tell the input, decide, print how the Job failed
//	run             decide and carry out until nothing is left to do; a line a decision
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
	case "brief":
		return s.brief()
	case "end":
		return s.end()
	case "run":
		return s.run()
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

func (s *scene) brief() string {
	resp, err := s.ask()
	if err != nil {
		return renderError(err)
	}
	return fmt.Sprintf("%s: %s\n", strings.TrimPrefix(resp.GetFollowUp().String(), "FOLLOW_UP_"), resp.GetExplanation().GetSummary())
}

func (s *scene) end() string {
	resp, err := s.ask()
	if err != nil {
		return renderError(err)
	}
	end := resp.GetVerdict().GetEnd()
	if end == nil {
		return fmt.Sprintf("%s: no failure\n", resp.GetVerdict().GetRule().Name())
	}
	return fmt.Sprintf("%s: %s\n", jobend.ClassName(end.GetClass()), jobend.Message(end))
}

// run carries decisions out until one asks for nothing, and prints a line for each.
func (s *scene) run() string {
	const most = 20
	var b strings.Builder
	for n := 1; n <= most; n++ {
		resp, err := s.ask()
		if err != nil {
			return b.String() + renderError(err)
		}
		fmt.Fprintf(&b, "%d %s: %s\n", n, strings.TrimPrefix(resp.GetDisposition().String(), "DISPOSITION_"),
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
