package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// Observe adds a value to a histogram, with the trace of the context as its exemplar, if the
// trace is sampled.
func Observe(ctx context.Context, h prometheus.Observer, value float64) {
	span := trace.SpanContextFromContext(ctx)
	with, ok := h.(prometheus.ExemplarObserver)
	if !ok || !span.IsSampled() {
		h.Observe(value)
		return
	}
	with.ObserveWithExemplar(value, prometheus.Labels{"trace_id": span.TraceID().String()})
}
