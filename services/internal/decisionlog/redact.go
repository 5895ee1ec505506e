package decisionlog

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// redactedPrefix begins the replacement of a name or a text.
const redactedPrefix = "redacted-"

// named are the fields of a record that hold names which users choose, or texts that may
// hold such a name. A test of this package lists all other fields with texts.
var named = fields(
	"JobRef.namespace", "JobRef.name", "CronJobRef.namespace", "CronJobRef.name",
	"ActiveJob.name", "OwnedJob.name", "KeptJob.name", "CreateJob.name", "DeleteJob.name", "DecideCronJobRequest.names_taken", "GroupClaim.cron_job", "GroupClaim.namespace", "RunGroup.name",
	"JobSpec.group_template_name", "Gang.template_name", "JobSpec.option_problems", "CronJobSpec.option_problems",
	"PodFailure.pod_name", "ActivePod.pod_name", "TerminatingPod.pod_name", "ContainerExit.container_name", "ExitCodesRequirement.container_name",
	"ContainerExit.termination_message", "EndFailure.pod_name", "EndFailure.container_name", "EndFailure.termination_message",
	"JobEnd.pod_name", "JobEnd.container_name", "JobEnd.policy_rule_name", "JobOptions.failure_rule_names",
	"NextTryResources.container", "RaisedPods.container",
	"JobCondition.message", "JobEvent.message",
	"Explanation.summary", "CronJobExplanation.summary", "RuleAnswer.detail", "Wait.detail", "KeptJob.detail", "SkippedRun.detail",
	"DecisionRecord.failure",
)

func fields(names ...protoreflect.FullName) map[protoreflect.FullName]bool {
	set := map[protoreflect.FullName]bool{"google.rpc.Status.message": true}
	for _, name := range names {
		set["jobpolicy.v1."+name] = true
	}
	return set
}

// A redactor replaces names and texts by hashes that only this process can compute.
type redactor struct{ key []byte }

func newRedactor() *redactor {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // It never fails.
	return &redactor{key}
}

// record returns a copy of the record without names. It does not change the original,
// which belongs to a decision that is being applied.
func (r *redactor) record(record *jobpolicyv1.DecisionRecord) *jobpolicyv1.DecisionRecord {
	record = proto.CloneOf(record)
	if record.GetError() != nil {
		record.Error.Details = nil
	}
	replace(record.ProtoReflect(), r.hashed)
	record.Redacted = true
	return record
}

func (r *redactor) hashed(text string) string {
	mac := hmac.New(sha256.New, r.key)
	_, _ = mac.Write([]byte(text)) // It never fails.
	return redactedPrefix + hex.EncodeToString(mac.Sum(nil)[:6])
}

// WithoutNames removes names and texts from a message, so that it can be compared with a
// log without names.
func WithoutNames(message proto.Message) {
	replace(message.ProtoReflect(), func(string) string { return "" })
}

// replaceEnd replaces the names in a condition that says how a Job failed. All else that it
// says stays, because the engine reads it.
func replaceEnd(c *jobpolicyv1.JobCondition, with func(string) string) (replaced bool) {
	if c.GetType() != jobend.ConditionType {
		return false
	}
	end, ok := jobend.Read(c.GetReason(), c.GetMessage())
	if ok {
		replace(end.ProtoReflect(), with)
		c.Message = jobend.Message(end)
	}
	return ok
}

// replace replaces every name and text in a message.
func replace(m protoreflect.Message, with func(string) string) {
	if c, ok := m.Interface().(*jobpolicyv1.JobCondition); ok && replaceEnd(c, with) {
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case named[field.FullName()] && field.IsList():
			for i, list := 0, value.List(); i < list.Len(); i++ {
				list.Set(i, protoreflect.ValueOfString(with(list.Get(i).String())))
			}
		case named[field.FullName()]:
			m.Set(field, protoreflect.ValueOfString(with(value.String())))
		case field.IsMap() || field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				replace(value.List().Get(i).Message(), with)
			}
		default:
			replace(value.Message(), with)
		}
		return true
	})
}
