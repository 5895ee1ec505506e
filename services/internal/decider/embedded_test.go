package decider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/refusal"
	"jobpolicy.dev/services/internal/telemetry"
	"jobpolicy.dev/services/internal/testenv"
)

type fixture struct {
	*Embedded
	registry *prometheus.Registry
	spans    *tracetest.SpanRecorder
	log      *testenv.Log
}

// newFixture takes the functions that decide from the Config.
func newFixture(t *testing.T, cfg EmbeddedConfig) *fixture {
	t.Helper()
	b := &fixture{registry: prometheus.NewRegistry(), spans: tracetest.NewSpanRecorder(), log: &testenv.Log{}}
	cfg.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))
	cfg.Registerer, cfg.Logger = b.registry, b.log.Logger()
	var err error
	if b.Embedded, err = NewEmbedded(cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

// decision returns the only span, and checks its name and attributes.
func (b *fixture) decision(t *testing.T, want map[string]any) sdktrace.ReadOnlySpan {
	t.Helper()
	spans := b.spans.Ended()
	if len(spans) != 1 || spans[0].Name() != telemetry.SpanDecisionMade {
		t.Fatalf("spans = %v, want one %s", spans, telemetry.SpanDecisionMade)
	}
	attrs := map[string]any{}
	for _, a := range spans[0].Attributes() {
		attrs[string(a.Key)] = a.Value.AsInterface()
	}
	if diff := cmp.Diff(want, attrs); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	return spans[0]
}

func failing(err error) EmbeddedConfig {
	return EmbeddedConfig{Decide: func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) { return nil, err }}
}

func TestEngineErrorsBecomeTheCodesOfTheContract(t *testing.T) {
	cases := map[string]struct {
		err      error
		wantCode codes.Code
		wantText string
	}{
		"an invalid request": {
			err:      &engine.InvalidRequestError{Violations: []engine.FieldViolation{{Field: "now", Description: "is required"}}},
			wantCode: codes.InvalidArgument, wantText: "invalid request: now: is required",
		},
		"an invalid request with three violations": {
			err:      &engine.InvalidRequestError{Violations: []engine.FieldViolation{{Field: "now", Description: "is required"}, {Field: "job"}, {Field: "spec"}}},
			wantCode: codes.InvalidArgument, wantText: "invalid request: now: is required (and 2 more)",
		},
		"an invalid request, wrapped": {
			err:      fmt.Errorf("while deciding: %w", &engine.InvalidRequestError{Violations: []engine.FieldViolation{{Field: "now", Description: "is required"}}}),
			wantCode: codes.InvalidArgument, wantText: "invalid request: now: is required",
		},
		"an unsupported capability": {
			err:      &engine.UnsupportedError{Field: "spec.success_policy", Description: "CAPABILITY_SUCCESS_POLICY"},
			wantCode: codes.Unimplemented, wantText: "unsupported: spec.success_policy: CAPABILITY_SUCCESS_POLICY",
		},
		"anything else, whose text stays here": {
			err:      errors.New("secret of the house"),
			wantCode: codes.Internal, wantText: status.Convert(refusal.ErrInternal).Message(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, failing(tc.err))
			_, err := b.DecideJob(t.Context(), testenv.Snapshot())
			st := status.Convert(err)
			if st.Code() != tc.wantCode || st.Message() != tc.wantText {
				t.Errorf("status = %s %q, want %s %q", st.Code(), st.Message(), tc.wantCode, tc.wantText)
			}
			if got := testutil.ToFloat64(b.metrics.refusals.WithLabelValues(tc.wantCode.String())); got != 1 {
				t.Errorf("refusals with code %s = %v, want 1", tc.wantCode, got)
			}
		})
	}
}

func TestPanicFailsOneRequestAndLeaksNothing(t *testing.T) {
	b := newFixture(t, EmbeddedConfig{Decide: func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		panic("secret of the house")
	}})
	_, err := b.DecideJob(t.Context(), testenv.Snapshot())
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v, want INTERNAL without the panic's text", err)
	}
	if log := b.log.String(); !strings.Contains(log, "secret of the house") || !strings.Contains(log, "embedded_test.go") || !strings.Contains(log, "default/pi") {
		t.Errorf("log lacks the panic, its stack or the job:\n%s", log)
	}
	if got := testutil.ToFloat64(b.metrics.panics); got != 1 {
		t.Errorf("panics = %v, want 1", got)
	}
}

func TestEngineIsNotAskedWhenTheCallerIsGone(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()
	cases := map[string]struct {
		ctx  context.Context
		want codes.Code
	}{
		"a caller that went away": {cancelled, codes.Canceled},
		"a deadline that passed":  {late, codes.DeadlineExceeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := false
			b := newFixture(t, EmbeddedConfig{Decide: func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
				asked = true
				return &jobpolicyv1.DecideJobResponse{}, nil
			}})
			_, err := b.DecideJob(tc.ctx, testenv.Snapshot())
			if status.Code(err) != tc.want || asked {
				t.Errorf("error = %v, asked = %v; want %s, not asked", err, asked, tc.want)
			}
		})
	}
}

func deadlineAnswer() *jobpolicyv1.DecideJobResponse {
	return &jobpolicyv1.DecideJobResponse{
		Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
		Delete:      []*jobpolicyv1.DeletePod{{}, {}},
		Status:      &jobpolicyv1.JobStatus{},
		Explanation: &jobpolicyv1.Explanation{
			DecidingRule: jobpolicyv1.Rule_RULE_DEADLINE_PASSED,
			Rules: []*jobpolicyv1.RuleAnswer{
				{Rule: jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED, Detail: "0 of 6"},
				{Rule: jobpolicyv1.Rule_RULE_DEADLINE_PASSED, Decided: true, Detail: "7 of 6"},
			},
			Waits: []*jobpolicyv1.Wait{{Reason: jobpolicyv1.WaitReason_WAIT_REASON_PODS_REMAINING, Detail: "2 pods"}},
		},
	}
}

func TestDecisionIsReportedInSpanAndMetrics(t *testing.T) {
	b := newFixture(t, EmbeddedConfig{Decide: func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		return deadlineAnswer(), nil
	}})
	if _, err := b.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Fatal(err)
	}
	span := b.decision(t, map[string]any{
		"k8s.namespace.name": "default", "k8s.job.name": "pi", "k8s.job.uid": "01010101-0101-0101-0101-010101010101",
		"jobpolicy.disposition": "apply", "jobpolicy.deciding_rule": "deadlinePassed", "jobpolicy.creates": int64(0),
		"jobpolicy.deletes": int64(2), "jobpolicy.releases": int64(0), "jobpolicy.writes_status": true,
		"jobpolicy.deletes_job": false,
	})
	var events []string
	for _, e := range span.Events() {
		events = append(events, e.Name+" "+e.Attributes[0].Value.AsString())
	}
	if diff := cmp.Diff([]string{"rule.answered backoffLimitExceeded", "rule.answered deadlinePassed", "decision.waiting pods_remaining"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(b.metrics.decisions.WithLabelValues("apply", "deadlinePassed")); got != 1 {
		t.Errorf("decisions = %v, want 1", got)
	}
	if got := testutil.ToFloat64(b.metrics.waits.WithLabelValues("pods_remaining")); got != 1 {
		t.Errorf("waits = %v, want 1", got)
	}
	if problems, err := testutil.GatherAndLint(b.registry); err != nil || len(problems) > 0 {
		t.Errorf("metrics lint: %v, %v", problems, err)
	}
}

func TestRefusalMarksTheSpan(t *testing.T) {
	b := newFixture(t, failing(&engine.UnsupportedError{Field: "spec.suspend"}))
	if _, err := b.DecideJob(t.Context(), testenv.Snapshot()); err == nil {
		t.Fatal("no error")
	}
	if st := b.spans.Ended()[0].Status(); st.Code.String() != "Error" || !strings.Contains(st.Description, "spec.suspend") {
		t.Errorf("span status = %+v, want an error that names the field", st)
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	b := newFixture(t, EmbeddedConfig{})
	_, err := NewEmbedded(EmbeddedConfig{
		TracerProvider: sdktrace.NewTracerProvider(), Registerer: b.registry, Logger: b.log.Logger(),
	})
	if err == nil {
		t.Error("NewEmbedded with a registry that has the metrics already: no error")
	}
}

func TestCronJobDecisionIsReportedInSpanAndMetrics(t *testing.T) {
	b := newFixture(t, EmbeddedConfig{})
	resp, err := b.DecideCronJob(t.Context(), testenv.CronJobSnapshot())
	if err != nil || resp.GetCreate().GetName() != "report-29539440" {
		t.Fatalf("DecideCronJob() = %v, %v, want the run of noon", resp, err)
	}
	span := b.decision(t, map[string]any{
		"k8s.namespace.name": "default", "k8s.cronjob.name": "report", "k8s.cronjob.uid": "03030303-0303-0303-0303-030303030303",
		"jobpolicy.disposition": "apply", "jobpolicy.deciding_rule": "runDue", "jobpolicy.creates": int64(1),
		"jobpolicy.deletes": int64(0), "jobpolicy.writes_status": false, "jobpolicy.edits": false,
	})
	if n := len(span.Events()); n < len(resp.GetExplanation().GetRules()) {
		t.Errorf("%d events on the span, want one for each of %d rules", n, len(resp.GetExplanation().GetRules()))
	}
	if got := testutil.ToFloat64(b.metrics.decisions.WithLabelValues("apply", "runDue")); got != 1 {
		t.Errorf("decisions = %v, want 1", got)
	}
}

func TestCronJobPanicFailsOneRequest(t *testing.T) {
	b := newFixture(t, EmbeddedConfig{DecideCron: func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		panic("secret of the house")
	}})
	_, err := b.DecideCronJob(t.Context(), testenv.CronJobSnapshot())
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v, want INTERNAL without the panic's text", err)
	}
	if text := b.log.String(); !strings.Contains(text, "secret of the house") || !strings.Contains(text, "default/report") {
		t.Errorf("log lacks the panic or the CronJob:\n%s", text)
	}
}

// A slow decision in the histogram leads to its trace.
func TestDurationsHaveExemplars(t *testing.T) {
	b := newFixture(t, EmbeddedConfig{})
	if _, err := b.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Fatal(err)
	}
	want := []string{"trace_id=" + b.spans.Ended()[0].SpanContext().TraceID().String()}
	got := testenv.Metrics(t, b.registry, "jobpolicy_engine_decision_duration_seconds")[0].Exemplars()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exemplars (-want +got):\n%s", diff)
	}
}
