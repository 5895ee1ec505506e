// Package telemetry has the metrics that all controllers share, the names of the executor's spans,
// events and attributes, and what registers metrics and starts spans.
package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
)

// Instrumentation scopes of the spans, one for each controller.
const (
	TracerName        = "jobpolicy.dev/executor"
	CronJobTracerName = "jobpolicy.dev/executor/cronjob"
	TTLTracerName     = "jobpolicy.dev/executor/ttl"
)

// LogMissedReconcile is the warning that is logged each time
// jobpolicy_missed_reconciles_total counts.
const LogMissedReconcile = "missed reconcile found"

// LogSecondController is the error that is logged when another controller works on a
// managed Job.
const LogSecondController = "another controller works on a managed Job"

// Names of spans. SpanJobReconciled, SpanCronJobReconciled and SpanTTLReconciled are roots.
const (
	SpanJobReconciled     = "job.reconciled"
	SpanDecisionRequested = "decision.requested"
	SpanGangEnsured       = "gang.ensured"
	SpanPodCreated        = "pod.created"
	SpanPodDeleted        = "pod.deleted"
	SpanPodEnded          = "pod.ended" // Its node is to end it: its spec.activeDeadlineSeconds is set.
	SpanPodClaimed        = "pod.claimed"
	SpanPodsListed        = "pods.listed"
	SpanJobRead           = "job.read"
	SpanStatusWritten     = "status.written"
	SpanFinalizerReleased = "finalizer.released"
	SpanOrphanReleased    = "orphan.released"
	SpanCronJobReconciled = "cronjob.reconciled"
	SpanCronJobEdited     = "cronjob.edited"
	SpanTTLReconciled     = "ttl.reconciled"
	SpanJobCreated        = "job.created"
	SpanJobDeleted        = "job.deleted"
)

// Names of span events.
const (
	// EventRuleAnswered is on the span of a reconcile, once for each rule that the
	// engine asked.
	EventRuleAnswered = "rule.answered"
	// EventReleaseConfirmed is on the finalizer.released span once the API
	// server has acknowledged that the finalizer is gone.
	EventReleaseConfirmed = "release.confirmed"
)

// Names of attributes.
const (
	AttrNamespace    = attribute.Key("k8s.namespace.name")
	AttrJobName      = attribute.Key("k8s.job.name")
	AttrJobUID       = attribute.Key("k8s.job.uid")
	AttrCronJobName  = attribute.Key("k8s.cronjob.name")
	AttrCronJobUID   = attribute.Key("k8s.cronjob.uid")
	AttrPodName      = attribute.Key("k8s.pod.name")
	AttrPodUID       = attribute.Key("k8s.pod.uid")
	AttrCause        = attribute.Key("jobpolicy.cause")
	AttrDisposition  = attribute.Key("jobpolicy.disposition")
	AttrDecidingRule = attribute.Key("jobpolicy.deciding_rule")
	AttrSummary      = attribute.Key("jobpolicy.summary")
	AttrEndClass     = attribute.Key("jobpolicy.end.class")
	AttrEndRuleName  = attribute.Key("jobpolicy.end.policy_rule_name")
	AttrRule         = attribute.Key("jobpolicy.rule")
	AttrDecided      = attribute.Key("jobpolicy.rule.decided")
	AttrDetail       = attribute.Key("jobpolicy.rule.detail")
	AttrCreates      = attribute.Key("jobpolicy.creates")
	AttrDeletes      = attribute.Key("jobpolicy.deletes")
	AttrReleases     = attribute.Key("jobpolicy.releases")
	AttrRequestID    = attribute.Key("jobpolicy.request_id")
)
