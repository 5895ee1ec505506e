package ttl

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/metrics"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// errBadAnswer: the answer is not one that the contract allows.
var errBadAnswer = errors.New("answer of the policy engine breaks the contract")

// ask asks what is to become of a finished Job. Its pods are not part of the
// question: whoever manages the Job looks after them.
func (c *Controller) ask(ctx context.Context, job *batchv1.Job) (*jobpolicyv1.DecideJobResponse, error) {
	req, err := c.request(job)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DecisionTimeout)
	defer cancel()
	d, err := c.cfg.Decider.DecideJob(ctx, req)
	if err != nil {
		c.metrics.shared.EngineFailed(err)
		return nil, fmt.Errorf("no decision from the policy engine: %w", err)
	}
	if d.GetRequestId() != req.GetRequestId() {
		return nil, fmt.Errorf("asked %q, got the answer to %q: %w", req.GetRequestId(), d.GetRequestId(), errBadAnswer)
	}
	for _, ev := range d.GetEvents() {
		c.recorder.Event(job, eventType(ev), ev.GetReason(), ev.GetMessage())
	}
	return d, nil
}

func eventType(ev *jobpolicyv1.JobEvent) string {
	if ev.GetType() == jobpolicyv1.EventType_EVENT_TYPE_WARNING {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

func (c *Controller) request(job *batchv1.Job) (*jobpolicyv1.DecideJobRequest, error) {
	uid, err := wire.UIDBytes(job.UID)
	if err != nil {
		return nil, fmt.Errorf("uid: %w", err)
	}
	spec, err := wire.JobSpec(job)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	status, err := wire.JobStatus(&job.Status)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	spec.TtlOptions = c.options(job)
	return &jobpolicyv1.DecideJobRequest{
		RequestId: string(job.UID) + "-ttl-" + job.ResourceVersion,
		Now:       timestamppb.New(c.now()),
		Job:       &jobpolicyv1.JobRef{Uid: uid, Namespace: job.Namespace, Name: job.Name, Generation: job.Generation},
		Spec:      spec,
		Status:    status,
	}, nil
}

func (c *Controller) options(job *batchv1.Job) *jobpolicyv1.TtlOptions {
	o := &jobpolicyv1.TtlOptions{
		SecondsAfterComplete: wire.Annotation(job.Annotations, AnnotationAfterComplete),
		SecondsAfterFailed:   wire.Annotation(job.Annotations, AnnotationAfterFailed),
	}
	obj, ok, err := c.namespaces.GetStore().GetByKey(job.Namespace)
	if err == nil && ok {
		o.NamespaceDefault = wire.Annotation(obj.(*corev1.Namespace).Annotations, AnnotationDefault)
	}
	return o
}

// TracerName is the instrumentation scope of this package's spans.
const TracerName = "jobpolicy.dev/executor/ttl"

// SpanJobExpired is the span of one deletion.
const SpanJobExpired = "job.expired"

func (c *Controller) span(ctx context.Context, job *batchv1.Job, d *jobpolicyv1.DecideJobResponse) (context.Context, func(error)) {
	provider := c.cfg.TracerProvider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	ctx, span := provider.Tracer(TracerName).Start(ctx, SpanJobExpired, trace.WithAttributes(
		attribute.String("k8s.namespace.name", job.Namespace), attribute.String("k8s.job.name", job.Name),
		attribute.String("k8s.job.uid", string(job.UID)), attribute.String("jobpolicy.summary", d.GetExplanation().GetSummary())))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// ttlMetrics are upstream's metric by its name, and what all controllers measure.
type ttlMetrics struct {
	deletion prometheus.Histogram
	shared   *metrics.Shared
}

// newTTLMetrics returns the metrics, registered. r may be nil.
func newTTLMetrics(r prometheus.Registerer) (*ttlMetrics, error) {
	m := &ttlMetrics{deletion: prometheus.NewHistogram(prometheus.HistogramOpts{
		Subsystem: "ttl_after_finished_controller", Name: "job_deletion_duration_seconds",
		Help:    "The time from when a finished Job was due to be deleted to when it was.",
		Buckets: prometheus.ExponentialBuckets(0.1, 2, 14),
	})}
	if err := metrics.Register(r, &m.deletion); err != nil {
		return nil, err
	}
	var err error
	m.shared, err = metrics.NewShared(r)
	return m, err
}
