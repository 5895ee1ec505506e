// Package metrics has the metrics that the controllers of this module have in
// common, and how they register theirs.
package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Counter returns a counter that is not registered yet.
func Counter(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: subsystem, Name: name, Help: help}, labels)
}

// Register registers a metric. One that is registered already, by another
// controller or by one before this, takes its place. Without a Registerer (nil)
// the metric is kept but not exported.
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

// QueueName is the name of a work queue, and empty if nobody would see what it says
// of itself: a queue with a name looks after its metrics twice a second, even if
// nothing is in it.
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
		engineErrors: Counter("jobpolicy", "engine_errors_total", "Decisions that the engine did not give, by gRPC code.", "code"),
	}
	err := errors.Join(m.Queues.register(r), Register(r, &m.engineErrors))
	m.engineErrors.WithLabelValues(codes.Unavailable.String()) // Shown as 0 from the beginning.
	return m, err
}

// EngineFailed counts an error of a Decider by its gRPC status code.
func (m *Shared) EngineFailed(err error) {
	m.engineErrors.WithLabelValues(status.Code(err).String()).Inc()
}
