package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/services/internal/telemetry"
)

// Whoever searches traces must not need to know which process a span is from.
func TestSpansOfBothProcessesNameThingsAlike(t *testing.T) {
	executors := []string{
		executor.EventRuleAnswered,
		string(executor.AttrNamespace), string(executor.AttrJobName), string(executor.AttrJobUID),
		string(executor.AttrDisposition), string(executor.AttrDecidingRule), string(executor.AttrEndClass), string(executor.AttrEndRuleName),
		string(executor.AttrCreates), string(executor.AttrDeletes), string(executor.AttrReleases),
		string(executor.AttrRule), string(executor.AttrDecided), string(executor.AttrDetail),
	}
	engines := []string{
		telemetry.EventRuleAnswered,
		string(telemetry.AttrJobNamespace), string(telemetry.AttrJobName), string(telemetry.AttrJobUID),
		string(telemetry.AttrDisposition), string(telemetry.AttrDecidingRule), string(telemetry.AttrEndClass), string(telemetry.AttrEndRuleName),
		string(telemetry.AttrCreates), string(telemetry.AttrDeletes), string(telemetry.AttrReleases),
		string(telemetry.AttrRule), string(telemetry.AttrRuleDecided), string(telemetry.AttrRuleDetail),
	}
	if diff := cmp.Diff(executors, engines); diff != "" {
		t.Errorf("names (-executor +engine):\n%s", diff)
	}
}
