package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Tracer starts spans. The zero value uses the global provider.
type Tracer struct{ provider trace.TracerProvider }

// NewTracer returns a Tracer; nil stands for the global provider.
func NewTracer(provider trace.TracerProvider) Tracer { return Tracer{provider} }

// Start starts a span, a child of the one in ctx if there is one.
func (t Tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	provider := t.provider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return provider.Tracer(TracerName).Start(ctx, name, options...)
}

// Span starts a child span. The function that it returns ends it, and marks it with
// the error, if any.
func (t Tracer) Span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	ctx, span := t.Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// Annotate sets attributes of the span in ctx.
func Annotate(ctx context.Context, attrs ...attribute.KeyValue) {
	trace.SpanFromContext(ctx).SetAttributes(attrs...)
}
