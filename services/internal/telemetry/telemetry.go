// Package telemetry sets up tracing, logs with trace IDs, and the metrics registry. It
// defines the names of all spans, events and attributes of the services.
//
// Weighed against OpenTelemetry's autoexport v0.72: that exports over OTLP unless it is
// told not to, writes to stdout, and brings eight more modules.
package telemetry

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/logging"
)

// ScopeName is the instrumentation scope of the services' own spans.
const ScopeName = "jobpolicy.dev/services"

// Spans, and the events on them.
const (
	// SpanDecisionMade is one decision of the engine. The engine may run in the executor's
	// process or in its own.
	SpanDecisionMade = "decision.made"
	// EventRuleAnswered is the answer of one rule. Each rule that was asked has one event.
	EventRuleAnswered = "rule.answered"
	// EventDecisionWaiting is one wait of the decision.
	EventDecisionWaiting = "decision.waiting"
)

// Attributes of SpanDecisionMade. All values are counts or come from short lists, except
// the identity of the Job or CronJob, and the name that its author gave a rule. The executor's spans use the same names.
const (
	AttrJobNamespace = attribute.Key("k8s.namespace.name")
	AttrJobName      = attribute.Key("k8s.job.name")
	AttrJobUID       = attribute.Key("k8s.job.uid")
	AttrCronJobName  = attribute.Key("k8s.cronjob.name")
	AttrCronJobUID   = attribute.Key("k8s.cronjob.uid")

	AttrDisposition  = attribute.Key("jobpolicy.disposition")
	AttrDecidingRule = attribute.Key("jobpolicy.deciding_rule")
	AttrEndClass     = attribute.Key("jobpolicy.end.class")
	AttrEndRuleName  = attribute.Key("jobpolicy.end.policy_rule_name")
	AttrCreates      = attribute.Key("jobpolicy.creates")
	AttrDeletes      = attribute.Key("jobpolicy.deletes")
	AttrReleases     = attribute.Key("jobpolicy.releases")
	AttrWritesStatus = attribute.Key("jobpolicy.writes_status")
	AttrDeletesJob   = attribute.Key("jobpolicy.deletes_job")
	AttrEdits        = attribute.Key("jobpolicy.edits")
)

// Attributes of the events.
const (
	AttrRule        = attribute.Key("jobpolicy.rule")
	AttrRuleDecided = attribute.Key("jobpolicy.rule.decided")
	AttrRuleDetail  = attribute.Key("jobpolicy.rule.detail")
	AttrWaitReason  = attribute.Key("jobpolicy.wait.reason")
	AttrWaitDetail  = attribute.Key("jobpolicy.wait.detail")
)

// NoRule is the rule of a decision that no rule reached.
const NoRule = "none"

// DecidingRule is the rule's name, or NoRule.
func DecidingRule(r jobpolicyv1.Rule) string { return cmp.Or(r.Name(), NoRule) }

// Disposition is the short name of d, for example "apply".
func Disposition(d jobpolicyv1.Disposition) string { return shortName("DISPOSITION_", d.String()) }

// WaitReason is the short name of r, for example "pods_remaining".
func WaitReason(r jobpolicyv1.WaitReason) string { return shortName("WAIT_REASON_", r.String()) }

func shortName(prefix, name string) string {
	return strings.ToLower(strings.TrimPrefix(name, prefix))
}

// uidBytes is the length of a UID on the wire.
const uidBytes = 16

// maxUIDBytes is the length of the longest UID that the contract allows.
const maxUIDBytes = 64

// UID formats a UID as Kubernetes does. It formats bytes of any other length in
// hexadecimal, and at most as many bytes as the contract allows.
func UID(uid []byte) string {
	if len(uid) != uidBytes {
		return hex.EncodeToString(uid[:min(len(uid), maxUIDBytes)])
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", uid[:4], uid[4:6], uid[6:8], uid[8:10], uid[10:])
}

// maxNameBytes is the length of the longest name that Kubernetes allows.
const maxNameBytes = 253

// Name cuts a name from a request to the longest name that Kubernetes allows. Spans and
// log lines are written before the engine has validated the request, and exporters drop
// a whole batch in which one span is too large.
func Name(s string) string { return logging.Text(s, maxNameBytes) }
