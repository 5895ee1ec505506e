package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/services/internal/decider"
	"jobpolicy.dev/services/internal/telemetry"
	"jobpolicy.dev/services/internal/testenv"
	"jobpolicy.dev/services/internal/tlsfiles"
)

// otlp is the environment of a process whose traces go to the collector.
func otlp(c *testenv.Collector) map[string]string {
	return map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": c.Endpoint,
		"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_BSP_SCHEDULE_DELAY":     "50",
	}
}

// One decision is one trace through two processes, as it arrives at a collector.
func TestTraceOfADecision(t *testing.T) {
	collector := testenv.NewCollector(t)
	for name, value := range otlp(collector) {
		t.Setenv(name, value)
	}
	p := testenv.Start(t, nil, "--insecure", "--grpc-address=127.0.0.1:0", "--http-address=", "--log-level=debug")
	address := p.Logged(t, "engine serving", "grpc")

	// This process is the caller.
	tracing, err := telemetry.StartTracing(t.Context(), telemetry.Service{Name: "jobpolicy-executor"}, (&testenv.Log{}).Logger())
	if err != nil {
		t.Fatal(err)
	}
	remote, err := decider.NewRemote(decider.RemoteConfig{
		Target: address, Credentials: insecure.NewCredentials(), TracerProvider: tracing.Provider, Timeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	if err := remote.Check(t.Context()); err != nil { // must leave no span
		t.Fatal(err)
	}
	ctx, root := tracing.Provider.Tracer("test").Start(t.Context(), "job.reconciled")
	if _, err := remote.DecideJob(ctx, testenv.FailedSnapshot()); err != nil {
		t.Fatal(err)
	}
	root.End()
	if err := tracing.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}

	var spans []testenv.Span
	testenv.Eventually(t, func() error {
		spans = collector.Spans()
		if len(spans) < 4 {
			return fmt.Errorf("%d spans", len(spans))
		}
		return nil
	})
	assertTree(t, spans)
	assertRuleEvents(t, find(t, spans, "jobpolicy-engine", telemetry.SpanDecisionMade))
	assertLogged(t, p, root.SpanContext())
}

// A name of 10 MB gets an error, and costs no other call its span.
func TestLongNamesDoNotSpoilTraces(t *testing.T) {
	collector := testenv.NewCollector(t)
	for name, value := range otlp(collector) {
		t.Setenv(name, value)
	}
	p := testenv.Start(t, nil, "--insecure", "--grpc-address=127.0.0.1:0", "--http-address=", "--log-level=debug")
	remote := newRemote(t, p.Logged(t, "engine serving", "grpc"), tlsfiles.Client{Insecure: true})
	long := testenv.Snapshot()
	long.Job.Name = strings.Repeat("x", 10<<20)
	long.Job.Uid = make([]byte, 1<<20)
	if _, err := remote.DecideJob(t.Context(), long); status.Code(err) != codes.InvalidArgument {
		t.Fatalf("DecideJob() = %v, want INVALID_ARGUMENT", err)
	}
	if _, err := remote.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Fatal(err)
	}
	var spans []testenv.Span
	testenv.Eventually(t, func() error {
		if spans = collector.Spans(); len(spans) < 4 {
			return fmt.Errorf("%d spans", len(spans))
		}
		return nil
	})
	for _, span := range spans {
		if size := proto.Size(span.Span); size > 10<<10 {
			t.Errorf("span %s takes %d bytes", span.GetName(), size)
		}
	}
	if size := len(p.Log.String()); size > 100<<10 {
		t.Errorf("the log takes %d bytes", size)
	}
}

// assertTree wants exactly this chain, each the parent of the next, in one trace.
func assertTree(t *testing.T, spans []testenv.Span) {
	t.Helper()
	chain := []struct {
		service, name string
		kind          tracev1.Span_SpanKind
	}{
		{service: "jobpolicy-executor", name: "job.reconciled", kind: tracev1.Span_SPAN_KIND_INTERNAL},
		{service: "jobpolicy-executor", name: "jobpolicy.v1.PolicyService/DecideJob", kind: tracev1.Span_SPAN_KIND_CLIENT},
		{service: "jobpolicy-engine", name: "jobpolicy.v1.PolicyService/DecideJob", kind: tracev1.Span_SPAN_KIND_SERVER},
		{service: "jobpolicy-engine", name: "decision.made", kind: tracev1.Span_SPAN_KIND_INTERNAL},
	}
	if len(spans) != len(chain) {
		t.Errorf("%d spans, want %d", len(spans), len(chain))
	}
	var traceID, parent []byte
	for _, link := range chain {
		span := find(t, spans, link.service, link.name)
		if traceID == nil {
			traceID = span.GetTraceId()
		}
		if span.GetKind() != link.kind {
			t.Errorf("%s of %s is %s, want %s", link.name, link.service, span.GetKind(), link.kind)
		}
		if !slices.Equal(span.GetTraceId(), traceID) || !slices.Equal(span.GetParentSpanId(), parent) {
			t.Errorf("%s of %s has trace %x and parent %x, want %x and %x",
				link.name, link.service, span.GetTraceId(), span.GetParentSpanId(), traceID, parent)
		}
		parent = span.GetSpanId()
	}
}

func find(t *testing.T, spans []testenv.Span, service, name string) testenv.Span {
	t.Helper()
	i := slices.IndexFunc(spans, func(s testenv.Span) bool { return s.Service == service && s.GetName() == name })
	if i < 0 {
		t.Fatalf("no span %s of %s in %v", name, service, spans)
	}
	return spans[i]
}

// assertRuleEvents wants an event for each rule asked, of which the last decided.
func assertRuleEvents(t *testing.T, span testenv.Span) {
	t.Helper()
	var rules []string
	var decided bool
	for _, event := range span.GetEvents() {
		if event.GetName() != telemetry.EventRuleAnswered {
			continue
		}
		for _, attr := range event.GetAttributes() {
			switch attr.GetKey() {
			case string(telemetry.AttrRule):
				rules = append(rules, attr.GetValue().GetStringValue())
			case string(telemetry.AttrRuleDecided):
				decided = attr.GetValue().GetBoolValue()
			}
		}
	}
	if len(rules) < 2 || rules[len(rules)-1] != "backoffLimitExceeded" || !decided {
		t.Errorf("rule events = %q, last decided: %v; want several that end with backoffLimitExceeded, which decided", rules, decided)
	}
}

// assertLogged wants the engine's log line about the decision to name the trace.
func assertLogged(t *testing.T, p *testenv.Process, sc trace.SpanContext) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if p.Log.Count("trace_id="+sc.TraceID().String()) == 0 {
			return errors.New("no log line has the trace's id")
		}
		return nil
	})
}
