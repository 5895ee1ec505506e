package decider

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/services/internal/telemetry"
)

// metrics are the engine's. The contract fixes the label values: rule names, wait reasons
// and codes.
type metrics struct {
	decisions *prometheus.CounterVec
	waits     *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	panics    prometheus.Counter
	duration  prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobpolicy_engine_decisions_total",
			Help: "Decisions made, on Jobs and CronJobs, by disposition and by the rule that decided.",
		}, []string{"disposition", "rule"}),
		waits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobpolicy_engine_waits_total",
			Help: "Waits of decisions, by reason.",
		}, []string{"reason"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobpolicy_engine_refusals_total",
			Help: "Requests that got no decision, by gRPC code.",
		}, []string{"code"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "jobpolicy_engine_panics_total",
			Help: "Panics recovered while deciding. Each is a defect to report.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "jobpolicy_engine_decision_duration_seconds",
			Help:    "Time the engine took for one decision, without transport.",
			Buckets: prometheus.ExponentialBuckets(10e-6, 4, 10),
		}),
	}
	return m, errors.Join(r.Register(m.decisions), r.Register(m.waits), r.Register(m.refusals), r.Register(m.panics), r.Register(m.duration))
}

func (m *metrics) decided(ctx context.Context, d telemetry.Decision, took time.Duration) {
	telemetry.Observe(ctx, m.duration, took.Seconds())
	m.decisions.WithLabelValues(d.Disposition, d.Rule).Inc()
	for _, w := range d.Waits {
		m.waits.WithLabelValues(telemetry.WaitReason(w.GetReason())).Inc()
	}
}

func (m *metrics) refused(err error) {
	m.refusals.WithLabelValues(status.Code(err).String()).Inc()
}
