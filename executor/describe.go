package executor

import (
	"go.opentelemetry.io/otel/trace"

	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func describeDecision(span trace.Span, d *jobpolicyv1.DecideJobResponse) {
	if !span.IsRecording() {
		return
	}
	x := d.GetExplanation()
	span.SetAttributes(
		telemetry.AttrDisposition.String(dispositionLabel(d.GetDisposition())),
		telemetry.AttrDecidingRule.String(x.GetDecidingRule().Name()),
		telemetry.AttrSummary.String(x.GetSummary()),
		telemetry.AttrCreates.Int(int(d.GetCreate().GetCount())),
		telemetry.AttrDeletes.Int(len(d.GetDelete())),
		telemetry.AttrReleases.Int(len(d.GetRelease())),
	)
	if end := d.GetVerdict().GetEnd(); end != nil {
		span.SetAttributes(telemetry.AttrEndClass.String(jobend.ClassName(end.GetClass())), telemetry.AttrEndRuleName.String(end.GetPolicyRuleName()))
	}
	telemetry.DescribeRules(span, x.GetRules())
}
