package ttl

import (
	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/executor/metrics"
)

// newDelay returns the built-in TTL-after-finished controller's metric, registered. r
// may be nil.
func newDelay(r prometheus.Registerer) (prometheus.Histogram, error) {
	delay := prometheus.NewHistogram(prometheus.HistogramOpts{
		Subsystem: "ttl_after_finished_controller", Name: "job_deletion_duration_seconds",
		Help:    "The time from when a finished Job was due to be deleted to when it was.",
		Buckets: prometheus.ExponentialBuckets(0.1, 2, 14),
	})
	err := metrics.Register(r, &delay)
	return delay, err
}
