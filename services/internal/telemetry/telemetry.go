// Package telemetry sets up what the services tell about themselves: traces,
// log lines that carry trace ids, and the metrics registry. The names of all
// spans, events and attributes are here.
package telemetry

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ScopeName is the instrumentation scope of the services' own spans.
const ScopeName = "jobpolicy.dev/services"

// Spans, and the events on them.
const (
	// SpanDecisionMade is one decision of the engine, in whichever process.
	SpanDecisionMade = "decision.made"
	// EventRuleAnswered is what one rule said; one event for each that was asked.
	EventRuleAnswered = "rule.answered"
	// EventDecisionHeld is one thing that the decision waits for.
	EventDecisionHeld = "decision.held"
)

// Attributes of SpanDecisionMade. All values but the identity of the Job or CronJob come from
// short lists or are counts. What the executor's spans have too is named alike.
const (
	AttrJobNamespace = attribute.Key("k8s.namespace.name")
	AttrJobName      = attribute.Key("k8s.job.name")
	AttrJobUID       = attribute.Key("k8s.job.uid")
	AttrCronJobName  = attribute.Key("k8s.cronjob.name")
	AttrCronJobUID   = attribute.Key("k8s.cronjob.uid")

	AttrDisposition  = attribute.Key("jobpolicy.disposition")
	AttrDecidingRule = attribute.Key("jobpolicy.deciding_rule")
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

// NoRule stands where a decision has no deciding rule.
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

// UID writes a UID as Kubernetes does; bytes of any other length in hexadecimal,
// and no more of them than a UID may have.
func UID(uid []byte) string {
	if len(uid) != uidBytes {
		return hex.EncodeToString(uid[:min(len(uid), maxUIDBytes)])
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", uid[:4], uid[4:6], uid[6:8], uid[8:10], uid[10:])
}

// maxNameBytes is the length of the longest name that Kubernetes allows.
const maxNameBytes = 253

// Name is a name as a caller sent it, cut to what a name may be. Spans and log
// lines come before the engine has validated anything, and a span of megabytes
// makes exporters drop those of others.
func Name(s string) string {
	if len(s) > maxNameBytes {
		s = s[:maxNameBytes] + "…"
	}
	return strings.ToValidUTF8(s, "")
}
