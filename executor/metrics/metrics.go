// Package metrics has the metrics that all controllers share, and registers metrics.
package metrics

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Counter returns a counter that is not registered yet.
func Counter(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: subsystem, Name: name, Help: help}, labels)
}

// Histogram returns a registered histogram without labels. r may be nil.
func Histogram(r prometheus.Registerer, subsystem, name, help string, buckets []float64) (prometheus.Histogram, error) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Subsystem: subsystem, Name: name, Help: help, Buckets: buckets})
	err := Register(r, &h)
	return h, err
}

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

// Register registers a metric. If it is registered already, by another controller, *c
// becomes that one. Without a Registerer (nil), the metric is kept but not exported.
func Register[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	if r == nil {
		return nil
	}
	err := r.Register(*c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(C); ok {
			*c = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Shared are the metrics that every controller has.
type Shared struct {
	Queues       *Queues
	engineErrors *prometheus.CounterVec
	exported     bool
}

// QueueName returns the name for a work queue. It is empty if metrics are not exported:
// a queue with a name updates its metrics twice a second, even if it is empty.
func (m *Shared) QueueName(name string) string {
	if !m.exported {
		return ""
	}
	return name
}

// NewShared returns the metrics that every controller has, registered. r may be
// nil.
func NewShared(r prometheus.Registerer) (*Shared, error) {
	m := &Shared{
		Queues:       newQueues(),
		exported:     r != nil,
		engineErrors: Counter("jobpolicy", "engine_errors_total", "Calls of the engine that failed, by gRPC code.", "code"),
	}
	err := errors.Join(m.Queues.register(r), Register(r, &m.engineErrors))
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		m.engineErrors.WithLabelValues(code.String()) // Exported as 0 before the first error.
	}
	return m, err
}

// EngineFailed counts an error of a Decider by its gRPC status code.
func (m *Shared) EngineFailed(err error) {
	m.engineErrors.WithLabelValues(status.Code(err).String()).Inc()
}
