package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// JobAttributes name the Job that a span is about.
func JobAttributes(job *jobpolicyv1.JobRef) []attribute.KeyValue {
	return []attribute.KeyValue{
		AttrJobNamespace.String(job.GetNamespace()),
		AttrJobName.String(job.GetName()),
		AttrJobUID.String(UID(job.GetUid())),
	}
}

// RecordDecision puts a decision, what each rule answered and what it waits for
// on the span.
func RecordDecision(span trace.Span, d *jobpolicyv1.DecideJobResponse) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		AttrDisposition.String(Disposition(d.GetDisposition())),
		AttrDecidingRule.String(DecidingRule(d.GetExplanation())),
		AttrCreates.Int64(int64(d.GetCreate().GetCount())),
		AttrDeletes.Int(len(d.GetDelete())),
		AttrReleases.Int(len(d.GetRelease())),
		AttrWritesStatus.Bool(d.GetStatus() != nil),
	)
	for _, r := range d.GetExplanation().GetRules() {
		span.AddEvent(EventRuleAnswered, trace.WithAttributes(
			AttrRule.String(r.GetRule()), AttrRuleDecided.Bool(r.GetDecided()), AttrRuleDetail.String(r.GetDetail())))
	}
	for _, w := range d.GetExplanation().GetWaits() {
		span.AddEvent(EventDecisionHeld, trace.WithAttributes(
			AttrWaitReason.String(WaitReason(w.GetReason())), AttrWaitDetail.String(w.GetDetail())))
	}
}
