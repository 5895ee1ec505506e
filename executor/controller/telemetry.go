package controller

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// SpanDecisionRequested is the span of a call of the engine.
const SpanDecisionRequested = "decision.requested"

// EventRuleAnswered is a span event, one for each rule that the engine asked.
const EventRuleAnswered = "rule.answered"

// Names of attributes.
const (
	AttrNamespace = attribute.Key("k8s.namespace.name")
	AttrJobName   = attribute.Key("k8s.job.name")
	AttrJobUID    = attribute.Key("k8s.job.uid")
	AttrCause     = attribute.Key("jobpolicy.cause")
	AttrRequestID = attribute.Key("jobpolicy.request_id")
	AttrSummary   = attribute.Key("jobpolicy.summary")
	AttrRule      = attribute.Key("jobpolicy.rule")
	AttrDecided   = attribute.Key("jobpolicy.rule.decided")
	AttrDetail    = attribute.Key("jobpolicy.rule.detail")
)

// Cause is why a key is reconciled.
type Cause string

// Causes that the queue itself has. Event handlers have theirs.
const (
	CauseTimer   Cause = "timer"   // The time that the reconcile before asked for.
	CauseRetry   Cause = "retry"   // The reconcile before has failed.
	CauseRequeue Cause = "requeue" // The reconcile before asked for another one at once.
)

// Trigger is what a reconcile follows from.
type Trigger struct {
	Cause Cause
	At    time.Time // Of the first event that no reconcile had begun for.
}

type triggerKey struct{}

// TriggerOf returns what the reconcile of the context follows from.
func TriggerOf(ctx context.Context) Trigger {
	t, _ := ctx.Value(triggerKey{}).(Trigger)
	return t
}

func withTrigger(ctx context.Context, t Trigger) context.Context {
	return context.WithValue(ctx, triggerKey{}, t)
}

// Tracer makes the spans of this controller.
func (c *Controller) Tracer() trace.Tracer {
	provider := c.TracerProvider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return provider.Tracer(c.tracer)
}

// RootSpan starts the span of a reconcile: a trace of its own, which begins with the
// event that the reconcile follows from. The function that it returns ends the span.
func (c *Controller) RootSpan(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	t := TriggerOf(ctx)
	ctx, span := c.Tracer().Start(ctx, name, trace.WithNewRoot(), trace.WithTimestamp(t.At),
		trace.WithAttributes(AttrCause.String(string(t.Cause))), trace.WithAttributes(attrs...))
	return ctx, ender(span)
}

// Span starts a child span. The function that it returns ends the span, and marks it
// with the error, if any.
func (c *Controller) Span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	ctx, span := c.Tracer().Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, ender(span)
}

func ender(span trace.Span) func(error) {
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
			AttrRule.String(r.GetRule()), AttrDecided.Bool(r.GetDecided()), AttrDetail.String(r.GetDetail())))
	}
}
