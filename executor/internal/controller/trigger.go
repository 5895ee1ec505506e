package controller

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"jobpolicy.dev/executor/internal/telemetry"
)

// Cause is why a key is reconciled.
type Cause string

// Causes that the queue itself has. Event handlers have theirs.
const (
	CauseTimer   Cause = "timer"   // The last reconcile asked for this time.
	CauseRetry   Cause = "retry"   // The last reconcile failed.
	CauseRequeue Cause = "requeue" // The last reconcile asked for another one at once.
)

// Trigger is what led to a reconcile.
type Trigger struct {
	Cause Cause
	// At is the time of the first event after the previous reconcile began. Without an event it
	// is the time at which this reconcile began.
	At time.Time
}

type triggerKey struct{}

// TriggerOf returns the trigger of the context's reconcile.
func TriggerOf(ctx context.Context) Trigger {
	t, _ := ctx.Value(triggerKey{}).(Trigger)
	return t
}

func withTrigger(ctx context.Context, t Trigger) context.Context {
	return context.WithValue(ctx, triggerKey{}, t)
}

// RootSpan starts the span of a reconcile: a trace of its own, which begins at the time of
// the trigger. The function that it returns ends the span.
func (c *Controller) RootSpan(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	t := TriggerOf(ctx)
	ctx, span := c.Start(ctx, name, trace.WithNewRoot(), trace.WithTimestamp(t.At),
		trace.WithAttributes(telemetry.AttrCause.String(string(t.Cause))), trace.WithAttributes(attrs...))
	return ctx, telemetry.Ender(span)
}
