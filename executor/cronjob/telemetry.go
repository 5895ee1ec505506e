package cronjob

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/metrics"
)

// TracerName is the instrumentation scope of this package's spans.
const TracerName = "jobpolicy.dev/executor/cronjob"

// Names of spans. SpanCronJobReconciled is the root of the others.
const (
	SpanCronJobReconciled = "cronjob.reconciled"
	SpanJobCreated        = "job.created"
	SpanJobDeleted        = "job.deleted"
	SpanCronJobEdited     = "cronjob.edited"
	SpanStatusWritten     = "status.written"
)

// Names of attributes.
const (
	AttrCronJobName = attribute.Key("k8s.cronjob.name")
	AttrCronJobUID  = attribute.Key("k8s.cronjob.uid")
)

func attrs(cron *batchv1.CronJob) []attribute.KeyValue {
	return []attribute.KeyValue{
		controller.AttrNamespace.String(cron.Namespace), AttrCronJobName.String(cron.Name), AttrCronJobUID.String(string(cron.UID)),
	}
}

// cronMetrics are the built-in CronJob controller's, by their names.
type cronMetrics struct{ skew prometheus.Histogram }

// newCronMetrics returns the metrics, registered. r may be nil.
func newCronMetrics(r prometheus.Registerer) (*cronMetrics, error) {
	m := &cronMetrics{skew: prometheus.NewHistogram(prometheus.HistogramOpts{
		Subsystem: "cronjob_controller", Name: "job_creation_skew_duration_seconds",
		Help:    "The time from when a run of a CronJob was due to when its Job was created.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 10),
	})}
	return m, metrics.Register(r, &m.skew)
}
