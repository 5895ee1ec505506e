package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Tracer starts spans.
type Tracer struct{ trace.Tracer }

// NewTracer returns a Tracer of spans with that instrumentation scope. provider may be
// nil, which stands for the global one.
func NewTracer(provider trace.TracerProvider, scope string) Tracer {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return Tracer{provider.Tracer(scope)}
}

// Span starts a child span. The function that it returns ends it, and marks it with
// the error, if any.
func (t Tracer) Span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	ctx, span := t.Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, Ender(span)
}

// Ender returns a function that ends the span, and marks it with the error, if any.
func Ender(span trace.Span) func(error) {
	return func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// DescribeRules writes into a span which rules the engine asked, and what each
// answered.
func DescribeRules(span trace.Span, rules []*jobpolicyv1.RuleAnswer) {
	if !span.IsRecording() {
		return
	}
	for _, r := range rules {
		span.AddEvent(EventRuleAnswered, trace.WithAttributes(
			AttrRule.String(r.GetRule().Name()), AttrDecided.Bool(r.GetDecided()), AttrDetail.String(r.GetDetail())))
	}
}
