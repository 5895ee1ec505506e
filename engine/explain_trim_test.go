package engine_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The decision does not depend on how much of it is explained, and EXPLAIN_FACTS is
// EXPLAIN_FULL without its texts and the answers of the rules.
func TestExplanationsComeInDoses(t *testing.T) {
	waits := 0
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		decide := func(explain jobpolicyv1.Explain) *jobpolicyv1.DecideJobResponse {
			req.Settings.Explain = explain
			resp, err := engine.DecideJob(req)
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		full, facts, none := decide(jobpolicyv1.Explain_EXPLAIN_FULL), decide(jobpolicyv1.Explain_EXPLAIN_FACTS), decide(jobpolicyv1.Explain_EXPLAIN_NONE)
		if unsaid := decide(jobpolicyv1.Explain_EXPLAIN_UNSPECIFIED); !proto.Equal(unsaid, full) {
			t.Fatalf("without a choice:\n%s\nwant EXPLAIN_FULL:\n%s", render(unsaid), render(full))
		}
		if facts.GetExplanation() == nil || none.GetExplanation() != nil {
			t.Fatalf("explanation of EXPLAIN_FACTS: %v, of EXPLAIN_NONE: %v", facts.GetExplanation(), none.GetExplanation())
		}
		waits += len(facts.GetExplanation().GetWaits())
		full.Explanation.Rules = nil
		full.Explanation.Summary = ""
		for _, w := range full.GetExplanation().GetWaits() {
			w.Detail = ""
		}
		if !proto.Equal(full, facts) {
			t.Fatalf("EXPLAIN_FACTS:\n%s\nwant:\n%s", render(facts), render(full))
		}
		full.Explanation = nil
		if !proto.Equal(full, none) {
			t.Fatalf("EXPLAIN_NONE:\n%s\nwant:\n%s", render(none), render(full))
		}
	})
	if waits == 0 {
		t.Error("no draw waited for anything")
	}
}
