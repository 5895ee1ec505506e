package cronjob_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The decision does not depend on how much of it is explained, and EXPLAIN_FACTS is
// EXPLAIN_FULL without its texts and the answers of the rules.
func TestExplanationsComeInDoses(t *testing.T) {
	skipped, kept := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		decide := func(explain jobpolicyv1.Explain) *jobpolicyv1.DecideCronJobResponse {
			req.Explain = explain
			resp, err := cronjob.Decide(req)
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		full, facts, none := decide(jobpolicyv1.Explain_EXPLAIN_FULL), decide(jobpolicyv1.Explain_EXPLAIN_FACTS), decide(jobpolicyv1.Explain_EXPLAIN_NONE)
		if unsaid := decide(jobpolicyv1.Explain_EXPLAIN_UNSPECIFIED); !proto.Equal(unsaid, full) {
			t.Fatalf("without a choice: %v, want EXPLAIN_FULL: %v", unsaid, full)
		}
		e := full.GetExplanation()
		e.Summary, e.Rules = "", nil
		for _, w := range e.GetWaits() {
			w.Detail = ""
		}
		for _, run := range e.GetSkipped() {
			skipped++
			run.Detail = ""
			if run.GetReason() == jobpolicyv1.SkipReason_SKIP_REASON_UNSPECIFIED {
				t.Fatalf("a run is skipped for no reason: %v", run)
			}
		}
		for _, job := range e.GetKept() {
			kept++
			job.Detail = ""
			if job.GetReason() == jobpolicyv1.KeepReason_KEEP_REASON_UNSPECIFIED {
				t.Fatalf("a Job is kept for no reason: %v", job)
			}
		}
		if !proto.Equal(full, facts) {
			t.Fatalf("EXPLAIN_FACTS: %v, want %v", facts, full)
		}
		full.Explanation = nil
		if !proto.Equal(full, none) {
			t.Fatalf("EXPLAIN_NONE: %v, want %v", none, full)
		}
	})
	if skipped == 0 || kept == 0 {
		t.Errorf("runs skipped: %d, Jobs kept: %d; want some of both", skipped, kept)
	}
}
