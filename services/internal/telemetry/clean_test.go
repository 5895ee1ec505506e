package telemetry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/prototext"

	"jobpolicy.dev/services/internal/telemetry"
	"jobpolicy.dev/services/internal/testenv"
)

// Whatever a caller puts into its own span, the spans of others arrive, in the same batch.
func TestOneSpanDoesNotSpoilOthers(t *testing.T) {
	const notUTF8 = "\xff\xfe"
	long := strings.Repeat("x", 100_000)
	cases := map[string]func(trace.Span){
		"a name that is not UTF-8":          func(s trace.Span) { s.SetName("Decide" + notUTF8) },
		"a long name":                       func(s trace.Span) { s.SetName(long) },
		"an attribute that is not UTF-8":    func(s trace.Span) { s.SetAttributes(attribute.String("rpc.method", notUTF8)) },
		"a long attribute":                  func(s trace.Span) { s.SetAttributes(attribute.String("rpc.method", long)) },
		"an event that is not UTF-8":        func(s trace.Span) { s.AddEvent(notUTF8) },
		"an event's attribute":              func(s trace.Span) { s.AddEvent("e", trace.WithAttributes(attribute.String("a", notUTF8))) },
		"a long event":                      func(s trace.Span) { s.AddEvent(long) },
		"a status that is not UTF-8":        func(s trace.Span) { s.SetStatus(codes.Error, notUTF8) },
		"a long status":                     func(s trace.Span) { s.SetStatus(codes.Error, long) },
		"nothing that is wrong with a span": func(s trace.Span) { s.SetName("fine") },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			collector := testenv.NewCollector(t)
			setenv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.Endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
			tracing, err := telemetry.StartTracing(t.Context(), service, (&testenv.Log{}).Logger())
			if err != nil {
				t.Fatal(err)
			}
			tracer := tracing.Provider.Tracer("test")
			_, bad := tracer.Start(t.Context(), "bad")
			spoil(bad)
			bad.End()
			_, good := tracer.Start(t.Context(), "good")
			good.End()
			if err := tracing.Shutdown(t.Context()); err != nil {
				t.Errorf("export: %v", err)
			}
			var names []string
			for _, span := range collector.Spans() {
				names = append(names, span.GetName())
				if text := prototext.Format(span.Span); len(text) > 10_000 || !utf8.ValidString(text) {
					t.Errorf("the span takes %d bytes: %.100q", len(text), text)
				}
			}
			if len(names) != 2 || !slices.Contains(names, "good") {
				t.Errorf("spans %.100q arrive, want two and one of them good", names)
			}
		})
	}
}

// A trace state of usual length arrives; one with which a caller could fill a batch does not.
func TestLongTraceStatesAreNotExported(t *testing.T) {
	for members, want := range map[int]bool{2: true, 30: false} {
		var list []string
		for i := range members {
			list = append(list, fmt.Sprintf("k%d=%s", i, strings.Repeat("v", 200)))
		}
		state, err := trace.ParseTraceState(strings.Join(list, ","))
		if err != nil {
			t.Fatal(err)
		}
		caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, TraceState: state})
		collector := testenv.NewCollector(t)
		setenv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.Endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
		tracing, err := telemetry.StartTracing(t.Context(), service, (&testenv.Log{}).Logger())
		if err != nil {
			t.Fatal(err)
		}
		_, span := tracing.Provider.Tracer("test").Start(trace.ContextWithRemoteSpanContext(t.Context(), caller), "span")
		span.End()
		if err := tracing.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		spans := collector.Spans()
		if len(spans) != 1 || (spans[0].GetTraceState() != "") != want || spans[0].GetTraceId()[0] != 1 {
			t.Errorf("%d members: %v, want one span of the caller's trace, with its state: %v", members, spans, want)
		}
	}
}
