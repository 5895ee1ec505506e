package telemetry

import (
	"cmp"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// JobAttributes name the Job that a span is about.
func JobAttributes(job *jobpolicyv1.JobRef) []attribute.KeyValue {
	return []attribute.KeyValue{
		AttrJobNamespace.String(Name(job.GetNamespace())),
		AttrJobName.String(Name(job.GetName())),
		AttrJobUID.String(UID(job.GetUid())),
	}
}

// CronJobAttributes name the CronJob that a span is about.
func CronJobAttributes(job *jobpolicyv1.CronJobRef) []attribute.KeyValue {
	return []attribute.KeyValue{
		AttrJobNamespace.String(Name(job.GetNamespace())),
		AttrCronJobName.String(Name(job.GetName())),
		AttrCronJobUID.String(UID(job.GetUid())),
	}
}

// A Ruling is what there is to tell of a decision, on a Job or on a CronJob.
type Ruling struct {
	// Disposition and Rule are short names; Rule is NoRule where none decided.
	Disposition, Rule string
	// Summary is one sentence.
	Summary string
	Rules   []*jobpolicyv1.RuleAnswer
	Waits   []*jobpolicyv1.Wait
	// steps are what the decision asks for, as attributes.
	steps []attribute.KeyValue
}

// JobRuling tells of a decision on a Job. Summary, Rules and Waits are as much as
// the caller asks for (Settings.explain).
func JobRuling(d *jobpolicyv1.DecideJobResponse) Ruling {
	e := d.GetExplanation()
	return Ruling{
		Disposition: Disposition(d.GetDisposition()),
		Rule:        DecidingRule(cmp.Or(d.GetVerdict().GetRule(), e.GetDecidingRule())),
		Summary:     e.GetSummary(),
		Rules:       e.GetRules(),
		Waits:       e.GetWaits(),
		steps: []attribute.KeyValue{
			AttrCreates.Int64(int64(d.GetCreate().GetCount())),
			AttrDeletes.Int(len(d.GetDelete())),
			AttrReleases.Int(len(d.GetRelease())),
			AttrWritesStatus.Bool(d.GetStatus() != nil),
			AttrDeletesJob.Bool(d.GetDeleteJob() != nil),
		},
	}
}

// CronJobRuling tells of a decision on a CronJob. Rule, Summary, Rules and Waits are
// as much as the caller asks for.
func CronJobRuling(d *jobpolicyv1.DecideCronJobResponse) Ruling {
	e := d.GetExplanation()
	creates := 0
	if d.GetCreate() != nil {
		creates = 1
	}
	return Ruling{
		Disposition: Disposition(d.GetDisposition()),
		Rule:        DecidingRule(e.GetDecidingRule()),
		Summary:     e.GetSummary(),
		Rules:       e.GetRules(),
		Waits:       e.GetWaits(),
		steps: []attribute.KeyValue{
			AttrCreates.Int(creates),
			AttrDeletes.Int(len(d.GetDelete())),
			AttrWritesStatus.Bool(d.GetStatus() != nil),
			AttrEdits.Bool(d.GetEdits() != nil),
		},
	}
}

// Record puts a decision, what each rule answered and what it waits for on the
// span.
func (r Ruling) Record(span trace.Span) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(AttrDisposition.String(r.Disposition), AttrDecidingRule.String(r.Rule))
	span.SetAttributes(r.steps...)
	for _, a := range r.Rules {
		span.AddEvent(EventRuleAnswered, trace.WithAttributes(
			AttrRule.String(a.GetRule().Name()), AttrRuleDecided.Bool(a.GetDecided()), AttrRuleDetail.String(a.GetDetail())))
	}
	for _, w := range r.Waits {
		span.AddEvent(EventDecisionHeld, trace.WithAttributes(
			AttrWaitReason.String(WaitReason(w.GetReason())), AttrWaitDetail.String(w.GetDetail())))
	}
}
