package executor

import (
	"go.opentelemetry.io/otel/trace"

	"jobpolicy.dev/executor/internal/telemetry"
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
	telemetry.DescribeRules(span, x.GetRules())
}
