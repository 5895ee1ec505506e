package ttl

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/metrics"
)

// TracerName is the instrumentation scope of this package's spans.
const TracerName = "jobpolicy.dev/executor/ttl"

// Names of spans. SpanTTLReconciled is the root of the others.
const (
	SpanTTLReconciled = "ttl.reconciled"
	SpanJobDeleted    = "job.deleted"
)

func attrs(job *batchv1.Job) []attribute.KeyValue {
	return []attribute.KeyValue{
		controller.AttrNamespace.String(job.Namespace), controller.AttrJobName.String(job.Name), controller.AttrJobUID.String(string(job.UID)),
	}
}

// ttlMetrics are the built-in TTL-after-finished controller's, by their names.
type ttlMetrics struct{ deletion prometheus.Histogram }

// newTTLMetrics returns the metrics, registered. r may be nil.
func newTTLMetrics(r prometheus.Registerer) (*ttlMetrics, error) {
	m := &ttlMetrics{deletion: prometheus.NewHistogram(prometheus.HistogramOpts{
		Subsystem: "ttl_after_finished_controller", Name: "job_deletion_duration_seconds",
		Help:    "The time from when a finished Job was due to be deleted to when it was.",
		Buckets: prometheus.ExponentialBuckets(0.1, 2, 14),
	})}
	return m, metrics.Register(r, &m.deletion)
}
