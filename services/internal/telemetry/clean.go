package telemetry

import (
	"context"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"jobpolicy.dev/services/internal/logging"
)

// Bounds of what callers can choose in a span, in bytes. That of attributes is
// maxAttributeBytes.
const (
	maxSpanNameBytes = 256
	maxStatusBytes   = 1024
	// maxTraceStateBytes is what W3C trace context asks everybody to pass on.
	maxTraceStateBytes = 512
)

// A cleaning exporter makes texts short and valid UTF-8 before it exports them. A caller
// chooses some of them, such as the name of the method. A text that is not UTF-8, or a
// batch that is too large, would lose the whole batch, and so the spans of others.
type cleaning struct{ sdktrace.SpanExporter }

// ExportSpans implements sdktrace.SpanExporter.
func (c cleaning) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	clean := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		clean[i] = cleanSpan{s}
	}
	return c.SpanExporter.ExportSpans(ctx, clean)
}

// A cleanSpan is a span with cleaned texts.
type cleanSpan struct{ sdktrace.ReadOnlySpan }

// Name implements sdktrace.ReadOnlySpan.
func (s cleanSpan) Name() string { return logging.Text(s.ReadOnlySpan.Name(), maxSpanNameBytes) }

// Attributes implements sdktrace.ReadOnlySpan.
func (s cleanSpan) Attributes() []attribute.KeyValue {
	return cleanAttributes(s.ReadOnlySpan.Attributes())
}

// Events implements sdktrace.ReadOnlySpan.
func (s cleanSpan) Events() []sdktrace.Event {
	events := s.ReadOnlySpan.Events() // a copy
	for i := range events {
		events[i].Name = logging.Text(events[i].Name, maxSpanNameBytes)
		events[i].Attributes = cleanAttributes(events[i].Attributes)
	}
	return events
}

// Status implements sdktrace.ReadOnlySpan.
func (s cleanSpan) Status() sdktrace.Status {
	status := s.ReadOnlySpan.Status()
	status.Description = logging.Text(status.Description, maxStatusBytes)
	return status
}

// SpanContext implements sdktrace.ReadOnlySpan.
func (s cleanSpan) SpanContext() trace.SpanContext { return cleanContext(s.ReadOnlySpan.SpanContext()) }

// Parent implements sdktrace.ReadOnlySpan.
func (s cleanSpan) Parent() trace.SpanContext { return cleanContext(s.ReadOnlySpan.Parent()) }

func cleanContext(c trace.SpanContext) trace.SpanContext {
	if len(c.TraceState().String()) > maxTraceStateBytes {
		return c.WithTraceState(trace.TraceState{})
	}
	return c
}

// cleanAttributes returns the attributes themselves if there is nothing wrong with them.
func cleanAttributes(attributes []attribute.KeyValue) []attribute.KeyValue {
	var clean []attribute.KeyValue
	for i, a := range attributes {
		if a.Value.Type() != attribute.STRING || utf8.ValidString(a.Value.AsString()) {
			continue
		}
		if clean == nil {
			clean = append(clean, attributes...)
		}
		clean[i] = a.Key.String(strings.ToValidUTF8(a.Value.AsString(), ""))
	}
	if clean == nil {
		return attributes
	}
	return clean
}
