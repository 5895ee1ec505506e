package policyserver

import (
	"context"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/stats"

	"jobpolicy.dev/services/internal/telemetry"
)

// spansPerSecond is how many spans may be started for one caller in a second, after as
// many at once. The exporter's queue holds 2,048 spans unless OTEL_BSP_MAX_QUEUE_SIZE says
// otherwise, and drops those that find no room. So one caller alone does not fill it.
const spansPerSecond = 1000

// tracing makes a span of every call of the policy service. There are none of probes and
// of the server's information.
func tracing(p trace.TracerProvider) stats.Handler {
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(p),
		otelgrpc.WithPropagators(telemetry.Propagator()),
		// Callers ask for the server's information whenever their readiness is checked.
		otelgrpc.WithFilter(filters.All(filters.ServiceName(ServiceName), filters.Not(filters.MethodName("GetServerInfo")))),
	)
}

// LimitSpans returns a provider with a limit on the spans of each caller of a Server. It is for
// everything that handles calls. A call beyond the limit is handled without a span. That does
// not depend on the sampler, which may ignore what the caller asks for.
func LimitSpans(p trace.TracerProvider) trace.TracerProvider { return limitedProvider{p} }

type limitedProvider struct{ trace.TracerProvider }

// Tracer implements trace.TracerProvider.
func (p limitedProvider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return limitedTracer{p.TracerProvider.Tracer(name, options...)}
}

type limitedTracer struct{ trace.Tracer }

// Start implements trace.Tracer.
func (t limitedTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if c := callFrom(ctx); c != nil && !c.conn.caller.spans.Allow() {
		return noop.Tracer{}.Start(ctx, name, options...) // The context keeps the trace of the caller.
	}
	return t.Tracer.Start(ctx, name, options...)
}
