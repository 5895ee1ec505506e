package telemetry

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/executor/writes"
)

// A Registrar makes metrics and registers them. If a metric is registered already, by another
// controller, its methods return that one. Err has what went wrong.
type Registrar struct {
	// To takes the metrics. nil: they are kept but not exported.
	To  prometheus.Registerer
	Err error
}

// Counter returns a counter.
func (r *Registrar) Counter(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
	return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: subsystem, Name: name, Help: help}, labels))
}

// Gauge returns a gauge.
func (r *Registrar) Gauge(subsystem, name, help string, labels ...string) *prometheus.GaugeVec {
	return register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: subsystem, Name: name, Help: help}, labels))
}

// Histogram returns a histogram.
func (r *Registrar) Histogram(subsystem, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Subsystem: subsystem, Name: name, Help: help, Buckets: buckets}, labels))
}

func register[C prometheus.Collector](r *Registrar, c C) C {
	if r.To == nil {
		return c
	}
	err := r.To.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		r.Err = errors.Join(r.Err, fmt.Errorf("metrics: %w", err))
	}
	return c
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

// Shared are the metrics that every controller has.
type Shared struct {
	Queues *Queues
	// RefusedWrites counts the writes that the API server refuses.
	RefusedWrites *prometheus.CounterVec
	engineErrors  *prometheus.CounterVec
	exported      bool
}

// QueueName returns the name for a work queue. It is empty if metrics are not exported:
// a queue with a name updates its metrics twice a second, even if it is empty.
func (m *Shared) QueueName(name string) string {
	if !m.exported {
		return ""
	}
	return name
}

// AlteredObjects counts the objects that were created and that admission changed so that they did
// not count, by their kind and the first field that was changed. fields are those of a kind, which
// are exported as 0 before the first change.
func AlteredObjects(r *Registrar, kind string, fields ...string) *prometheus.CounterVec {
	c := r.Counter("jobpolicy", "altered_objects_total", "New pods and Jobs that admission changed so that they did not count, by the first field that was changed. They were deleted.", "kind", "field")
	for _, field := range fields {
		c.WithLabelValues(kind, field)
	}
	return c
}

// NewShared returns the metrics that every controller has, registered. r may be
// nil.
func NewShared(r prometheus.Registerer) (*Shared, error) {
	metrics := &Registrar{To: r}
	m := &Shared{
		Queues:        newQueues(metrics),
		exported:      r != nil,
		RefusedWrites: metrics.Counter("jobpolicy", "refused_writes_total", "Writes that the API server refused, by kind.", "write"),
		engineErrors:  metrics.Counter("jobpolicy", "engine_errors_total", "Calls of the engine that failed, by gRPC code.", "code"),
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		m.engineErrors.WithLabelValues(code.String()) // Exported as 0 before the first error.
	}
	for _, kind := range writes.Kinds() {
		m.RefusedWrites.WithLabelValues(string(kind))
	}
	return m, metrics.Err
}

// EngineFailed counts an error of a Decider by its gRPC status code.
func (m *Shared) EngineFailed(err error) {
	m.engineErrors.WithLabelValues(status.Code(err).String()).Inc()
}
