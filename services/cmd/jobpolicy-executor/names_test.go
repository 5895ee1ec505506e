package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	exported "jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/services/internal/telemetry"
)

// Whoever searches traces must not need to know which process a span is from.
func TestSpansOfBothProcessesNameThingsAlike(t *testing.T) {
	executors := []string{
		exported.EventRuleAnswered,
		string(exported.AttrNamespace), string(exported.AttrJobName), string(exported.AttrJobUID),
		string(exported.AttrDisposition), string(exported.AttrDecidingRule),
		string(exported.AttrCreates), string(exported.AttrDeletes), string(exported.AttrReleases),
		string(exported.AttrRule), string(exported.AttrDecided), string(exported.AttrDetail),
	}
	engines := []string{
		telemetry.EventRuleAnswered,
		string(telemetry.AttrJobNamespace), string(telemetry.AttrJobName), string(telemetry.AttrJobUID),
		string(telemetry.AttrDisposition), string(telemetry.AttrDecidingRule),
		string(telemetry.AttrCreates), string(telemetry.AttrDeletes), string(telemetry.AttrReleases),
		string(telemetry.AttrRule), string(telemetry.AttrRuleDecided), string(telemetry.AttrRuleDetail),
	}
	if diff := cmp.Diff(executors, engines); diff != "" {
		t.Errorf("names (-executor +engine):\n%s", diff)
	}
}
