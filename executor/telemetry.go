package executor

import (
	"context"
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// TracerName is the instrumentation scope of this package's spans.
const TracerName = "jobpolicy.dev/executor"

// LogMissedWake is what is logged, as a warning, each time jobpolicy_missed_wakes_total
// counts.
const LogMissedWake = "missed wake found"

// Names of spans. One job.woken is the root of everything that one wake brings
// about.
const (
	SpanJobWoken          = "job.woken"
	SpanRoundRun          = "round.run"
	SpanDecisionRequested = "decision.requested"
	SpanGangEnsured       = "gang.ensured"
	SpanPodCreated        = "pod.created"
	SpanPodDeleted        = "pod.deleted"
	SpanPodClaimed        = "pod.claimed"
	SpanPodsListed        = "pods.listed"
	SpanJobRead           = "job.read"
	SpanStatusWritten     = "status.written"
	SpanFinalizerReleased = "finalizer.released"
	SpanOrphanReleased    = "orphan.released"
)

// Names of span events.
const (
	// EventRuleAnswered is on the round's span, once for each rule asked.
	EventRuleAnswered = "rule.answered"
	// EventReleaseConfirmed is on the finalizer.released span once the API
	// server has acknowledged that the finalizer is gone.
	EventReleaseConfirmed = "release.confirmed"
)

// Names of attributes.
const (
	AttrJobNamespace = attribute.Key("k8s.namespace.name")
	AttrJobName      = attribute.Key("k8s.job.name")
	AttrJobUID       = attribute.Key("k8s.job.uid")
	AttrPodName      = attribute.Key("k8s.pod.name")
	AttrPodUID       = attribute.Key("k8s.pod.uid")
	AttrCause        = attribute.Key("jobpolicy.wake.cause")
	AttrDisposition  = attribute.Key("jobpolicy.disposition")
	AttrDecidingRule = attribute.Key("jobpolicy.deciding_rule")
	AttrSummary      = attribute.Key("jobpolicy.summary")
	AttrRule         = attribute.Key("jobpolicy.rule")
	AttrDecided      = attribute.Key("jobpolicy.rule.decided")
	AttrDetail       = attribute.Key("jobpolicy.rule.detail")
	AttrCreates      = attribute.Key("jobpolicy.creates")
	AttrDeletes      = attribute.Key("jobpolicy.deletes")
	AttrReleases     = attribute.Key("jobpolicy.releases")
	AttrRequestID    = attribute.Key("jobpolicy.request_id")
)

// What wakes a Job: the values of AttrCause.
const (
	CausePodEvent = "pod.event"
	CauseJobEvent = "job.event"
	CauseTimer    = "timer"
	CauseRetry    = "retry"
	// CauseSafetyLook: nothing else woke the Job, though it ought to.
	CauseSafetyLook = "safety.look"
)

func (e *Executor) tracer() trace.Tracer {
	provider := e.cfg.TracerProvider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return provider.Tracer(TracerName)
}

// span starts a child span. The function that it returns ends it, and marks it
// with the error, if any.
func (e *Executor) span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	ctx, span := e.tracer().Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func describeDecision(span trace.Span, d *jobpolicyv1.DecideJobResponse) {
	if !span.IsRecording() {
		return
	}
	x := d.GetExplanation()
	span.SetAttributes(
		AttrDisposition.String(dispositionLabel(d.GetDisposition())),
		AttrDecidingRule.String(x.GetDecidingRule()),
		AttrSummary.String(x.GetSummary()),
		AttrCreates.Int(int(d.GetCreate().GetCount())),
		AttrDeletes.Int(len(d.GetDelete())),
		AttrReleases.Int(len(d.GetRelease())),
	)
	for _, r := range x.GetRules() {
		span.AddEvent(EventRuleAnswered, trace.WithAttributes(
			AttrRule.String(r.GetRule()), AttrDecided.Bool(r.GetDecided()), AttrDetail.String(r.GetDetail())))
	}
}

func jobAttrs(job *batchv1.Job) []any {
	return []any{slog.String("namespace", job.Namespace), slog.String("job", job.Name), slog.String("uid", string(job.UID))}
}
