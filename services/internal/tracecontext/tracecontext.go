// Package tracecontext says how a call carries its trace. It is separate from package
// telemetry, so that a client that writes no traces does not link the exporters.
package tracecontext

import "go.opentelemetry.io/otel/propagation"

// Propagator carries W3C trace context and baggage.
func Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
}
