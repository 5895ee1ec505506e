package telemetry

import (
	"cmp"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// JobAttributes identify the Job of a span.
func JobAttributes(job *jobpolicyv1.JobRef) []attribute.KeyValue {
	return []attribute.KeyValue{
		AttrJobNamespace.String(Name(job.GetNamespace())),
		AttrJobName.String(Name(job.GetName())),
		AttrJobUID.String(UID(job.GetUid())),
	}
}

// CronJobAttributes identify the CronJob of a span.
func CronJobAttributes(job *jobpolicyv1.CronJobRef) []attribute.KeyValue {
	return []attribute.KeyValue{
		AttrJobNamespace.String(Name(job.GetNamespace())),
		AttrCronJobName.String(Name(job.GetName())),
		AttrCronJobUID.String(UID(job.GetUid())),
	}
}

// A Decision is what spans, metrics and logs report about a decision on a Job or a
// CronJob.
type Decision struct {
	// Disposition and Rule are short names. Rule is NoRule if no rule decided.
	Disposition, Rule string
	// Summary is one sentence.
	Summary string
	Rules   []*jobpolicyv1.RuleAnswer
	Waits   []*jobpolicyv1.Wait
	// steps returns attributes: what the decision asks the caller to do.
	steps func() []attribute.KeyValue
}

// JobDecision describes a decision on a Job. The caller's Settings.explain limits
// Summary, Rules and Waits.
func JobDecision(d *jobpolicyv1.DecideJobResponse) Decision {
	e := d.GetExplanation()
	return Decision{
		Disposition: Disposition(d.GetDisposition()),
		Rule:        DecidingRule(cmp.Or(d.GetVerdict().GetRule(), e.GetDecidingRule())),
		Summary:     e.GetSummary(),
		Rules:       e.GetRules(),
		Waits:       e.GetWaits(),
		steps: func() []attribute.KeyValue {
			steps := []attribute.KeyValue{
				AttrCreates.Int64(int64(d.GetCreate().GetCount())),
				AttrDeletes.Int(len(d.GetDelete())),
				AttrReleases.Int(len(d.GetRelease())),
				AttrWritesStatus.Bool(d.GetStatus() != nil),
				AttrDeletesJob.Bool(d.GetDeleteJob() != nil),
			}
			if end := d.GetVerdict().GetEnd(); end != nil {
				steps = append(steps, AttrEndClass.String(jobend.ClassName(end.GetClass())), AttrEndRuleName.String(end.GetPolicyRuleName()))
			}
			return steps
		},
	}
}

// CronJobDecision describes a decision on a CronJob. The caller's Settings.explain limits
// Rule, Summary, Rules and Waits.
func CronJobDecision(d *jobpolicyv1.DecideCronJobResponse) Decision {
	e := d.GetExplanation()
	creates := 0
	if d.GetCreate() != nil {
		creates = 1
	}
	return Decision{
		Disposition: Disposition(d.GetDisposition()),
		Rule:        DecidingRule(e.GetDecidingRule()),
		Summary:     e.GetSummary(),
		Rules:       e.GetRules(),
		Waits:       e.GetWaits(),
		steps: func() []attribute.KeyValue {
			return []attribute.KeyValue{
				AttrCreates.Int(creates),
				AttrDeletes.Int(len(d.GetDelete())),
				AttrWritesStatus.Bool(d.GetStatus() != nil),
				AttrEdits.Bool(d.GetEdits() != nil),
			}
		},
	}
}

// Record adds the decision, each rule's answer and each wait to the span.
func (d Decision) Record(span trace.Span) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(AttrDisposition.String(d.Disposition), AttrDecidingRule.String(d.Rule))
	span.SetAttributes(d.steps()...)
	for _, a := range d.Rules {
		span.AddEvent(EventRuleAnswered, trace.WithAttributes(
			AttrRule.String(a.GetRule().Name()), AttrRuleDecided.Bool(a.GetDecided()), AttrRuleDetail.String(a.GetDetail())))
	}
	for _, w := range d.Waits {
		span.AddEvent(EventDecisionWaiting, trace.WithAttributes(
			AttrWaitReason.String(WaitReason(w.GetReason())), AttrWaitDetail.String(w.GetDetail())))
	}
}
