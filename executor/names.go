package executor

import "jobpolicy.dev/executor/internal/telemetry"

// TracerName is the instrumentation scope of the spans about Jobs.
const TracerName = telemetry.TracerName

// Messages in the log by which people find what counts as a defect or needs them.
const (
	LogMissedReconcile  = telemetry.LogMissedReconcile
	LogSecondController = telemetry.LogSecondController
)

// Names of span events and attributes. Spans of a policy engine have the same ones.
const (
	EventRuleAnswered = telemetry.EventRuleAnswered
	AttrNamespace     = telemetry.AttrNamespace
	AttrJobName       = telemetry.AttrJobName
	AttrJobUID        = telemetry.AttrJobUID
	AttrCronJobName   = telemetry.AttrCronJobName
	AttrDisposition   = telemetry.AttrDisposition
	AttrDecidingRule  = telemetry.AttrDecidingRule
	AttrEndClass      = telemetry.AttrEndClass
	AttrEndRuleName   = telemetry.AttrEndRuleName
	AttrCreates       = telemetry.AttrCreates
	AttrDeletes       = telemetry.AttrDeletes
	AttrReleases      = telemetry.AttrReleases
	AttrRule          = telemetry.AttrRule
	AttrDecided       = telemetry.AttrDecided
	AttrDetail        = telemetry.AttrDetail
)
