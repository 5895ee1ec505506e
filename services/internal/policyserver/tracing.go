package policyserver

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"

	"jobpolicy.dev/services/internal/tracecontext"
)

// spansPerSecond is how many spans may be recorded for one caller in a second, after as
// many at once. The exporter's queue holds 2,048 spans unless OTEL_BSP_MAX_QUEUE_SIZE says
// otherwise, and drops those that find no room. So one caller alone does not fill it.
const spansPerSecond = 1000

// tracing makes a span of every call of the policy service. There are none of probes and
// of the server's information.
func tracing(p trace.TracerProvider) stats.Handler {
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(p),
		otelgrpc.WithPropagators(limited{tracecontext.Propagator()}),
		// Callers ask for the server's information whenever their readiness is checked.
		otelgrpc.WithFilter(filters.All(filters.ServiceName(ServiceName), filters.Not(filters.MethodName("GetServerInfo")))),
	)
}

// limited is a propagator that takes a call for one that is not sampled if its caller has
// no span left.
type limited struct{ propagation.TextMapPropagator }

// Extract implements propagation.TextMapPropagator.
func (l limited) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	return forNextSpan(l.TextMapPropagator.Extract(ctx, carrier))
}

// forNextSpan returns the context in which the next span of a call is started. Samplers follow
// the decision of the span before it, which is "not sampled" there if the caller has no span
// left.
func forNextSpan(ctx context.Context) context.Context {
	parent := trace.SpanContextFromContext(ctx)
	c := callFrom(ctx)
	if c == nil || (parent.IsValid() && !parent.IsSampled()) || c.conn.caller.spans.Allow() {
		return ctx
	}
	if !parent.IsValid() {
		parent = randomSpanContext()
	}
	return trace.ContextWithRemoteSpanContext(ctx, parent.WithTraceFlags(parent.TraceFlags().WithSampled(false)))
}

// randomSpanContext stands for the trace of a call that came without one.
func randomSpanContext() trace.SpanContext {
	var c trace.SpanContextConfig
	binary.NativeEndian.PutUint64(c.TraceID[:], rand.Uint64())
	binary.NativeEndian.PutUint64(c.TraceID[8:], rand.Uint64())
	binary.NativeEndian.PutUint64(c.SpanID[:], rand.Uint64())
	return trace.NewSpanContext(c)
}
