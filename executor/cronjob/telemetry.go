package cronjob

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/metrics"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// TracerName is the instrumentation scope of this package's spans.
const TracerName = "jobpolicy.dev/executor/cronjob"

// Names of spans. One cronjob.round is the root of everything that a round brings
// about.
const (
	SpanCronJobRound      = "cronjob.round"
	SpanDecisionRequested = "decision.requested"
	SpanJobCreated        = "job.created"
	SpanJobDeleted        = "job.deleted"
	SpanCronJobEdited     = "cronjob.edited"
	SpanStatusWritten     = "status.written"
)

// Names of attributes.
const (
	AttrNamespace   = attribute.Key("k8s.namespace.name")
	AttrCronJobName = attribute.Key("k8s.cronjob.name")
	AttrCronJobUID  = attribute.Key("k8s.cronjob.uid")
	AttrJobName     = attribute.Key("k8s.job.name")
	AttrSummary     = attribute.Key("jobpolicy.summary")
	AttrRequestID   = attribute.Key("jobpolicy.request_id")
	attrRule        = attribute.Key("jobpolicy.rule")
	attrDecided     = attribute.Key("jobpolicy.rule.decided")
	attrDetail      = attribute.Key("jobpolicy.rule.detail")
)

// eventRuleAnswered is on the round's span, once for each rule asked.
const eventRuleAnswered = "rule.answered"

// span starts a span. The function that it returns ends it, and marks it with the
// error, if any.
func (c *Controller) span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	provider := c.cfg.TracerProvider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	ctx, span := provider.Tracer(TracerName).Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func attrs(cron *batchv1.CronJob) []attribute.KeyValue {
	return []attribute.KeyValue{
		AttrNamespace.String(cron.Namespace), AttrCronJobName.String(cron.Name), AttrCronJobUID.String(string(cron.UID)),
	}
}

func describeDecision(ctx context.Context, d *jobpolicyv1.DecideCronJobResponse) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(AttrSummary.String(d.GetExplanation().GetSummary()))
	for _, r := range d.GetExplanation().GetRules() {
		span.AddEvent(eventRuleAnswered, trace.WithAttributes(
			attrRule.String(r.GetRule()), attrDecided.Bool(r.GetDecided()), attrDetail.String(r.GetDetail())))
	}
}

// cronMetrics are upstream's CronJob controller metrics by their names, and what all
// controllers measure.
type cronMetrics struct {
	skew   prometheus.Histogram
	shared *metrics.Shared
}

// newCronMetrics returns the metrics, registered. r may be nil.
func newCronMetrics(r prometheus.Registerer) (*cronMetrics, error) {
	m := &cronMetrics{skew: prometheus.NewHistogram(prometheus.HistogramOpts{
		Subsystem: "cronjob_controller", Name: "job_creation_skew_duration_seconds",
		Help:    "The time from when a run of a CronJob was due to when its Job was created.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 10),
	})}
	if err := metrics.Register(r, &m.skew); err != nil {
		return nil, err
	}
	var err error
	m.shared, err = metrics.NewShared(r)
	return m, err
}
