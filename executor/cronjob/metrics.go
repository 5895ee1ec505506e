package cronjob

import (
	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/executor/metrics"
)

// newSkew returns the built-in CronJob controller's metric, registered. r may be nil.
func newSkew(r prometheus.Registerer) (prometheus.Histogram, error) {
	skew := prometheus.NewHistogram(prometheus.HistogramOpts{
		Subsystem: "cronjob_controller", Name: "job_creation_skew_duration_seconds",
		Help:    "The time from when a run of a CronJob was due to when its Job was created.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 10),
	})
	err := metrics.Register(r, &skew)
	return skew, err
}
