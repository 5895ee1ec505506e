package shadow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"jobpolicy.dev/executor/internal/controller"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Kind is what the engine would do that the other controller has not done.
type Kind string

// The kinds. They are values of a metric's label.
const (
	CreatePods  Kind = "create_pods"
	DeletePods  Kind = "delete_pods"
	ReleasePods Kind = "release_pods"
	WriteStatus Kind = "write_status"
	CreateJob   Kind = "create_job"
	DeleteJob   Kind = "delete_job"
	EditCronJob Kind = "edit_cronjob"
	// Rejected: the engine makes no decision about the object.
	Rejected Kind = "rejected"
)

// Difference is one step of a decision that the other controller has not taken.
type Difference struct {
	Kind Kind
	// Rule is the name of the rule that decided; "none" if no rule did.
	Rule string
	// Detail says what would change, and Why is the summary of the decision.
	Detail, Why string
}

// noRule is the label of a decision that no rule made.
const noRule = "none"

// maxText bounds the texts of a difference, in bytes.
const maxText = 500

// OfJob returns the steps of decision d about a Job. req is the request that it answers.
func OfJob(req *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) []Difference {
	if d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
		return nil
	}
	of := steps{rule: ruleOf(d.GetVerdict().GetRule(), d.GetExplanation().GetDecidingRule()), why: d.GetExplanation().GetSummary()}
	if create := d.GetCreate(); create != nil {
		of.add(CreatePods, "%s", text(create))
	}
	if n := len(d.GetDelete()); n > 0 {
		of.add(DeletePods, "%d pods: %s", n, reasons(d.GetDelete()))
	}
	if n := len(d.GetEnd()); n > 0 {
		of.add(DeletePods, "%d pods that their nodes end, and that stay", n)
	}
	if n := len(d.GetDeleteFinished()); n > 0 {
		of.add(DeletePods, "%d finished pods", n)
	}
	if changes := changed(req.GetStatus(), d.GetStatus()); d.GetStatus() != nil && changes != "" {
		of.add(WriteStatus, "%s", changes)
	}
	if n := len(d.GetRelease()); n > 0 {
		of.add(ReleasePods, "the finalizers of %d pods", n)
	}
	return of.found
}

// OfFinishedJob returns the step of a decision about a Job's time to live; none if the Job
// stays.
func OfFinishedJob(d *jobpolicyv1.DecideJobResponse) []Difference {
	if d.GetDeleteJob() == nil {
		return nil
	}
	of := steps{rule: noRule, why: d.GetExplanation().GetSummary()}
	of.add(DeleteJob, "due since %s", d.GetDeleteJob().GetDueTime().AsTime().Format(time.RFC3339))
	return of.found
}

// OfCronJob returns the steps of decision d about a CronJob. req is the request that it
// answers.
func OfCronJob(req *jobpolicyv1.DecideCronJobRequest, d *jobpolicyv1.DecideCronJobResponse) []Difference {
	if d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
		return nil
	}
	of := steps{rule: ruleOf(d.GetExplanation().GetDecidingRule()), why: d.GetExplanation().GetSummary()}
	for _, del := range d.GetDelete() {
		of.add(DeleteJob, "%s: %s", del.GetName(), del.GetReason())
	}
	if create := d.GetCreate(); create != nil {
		of.add(CreateJob, "%s, scheduled for %s", create.GetName(), create.GetScheduledTime().AsTime().Format(time.RFC3339))
	}
	if d.GetEdits() != nil {
		of.add(EditCronJob, "%s", text(d.GetEdits()))
	}
	if changes := changed(req.GetStatus(), d.GetStatus()); d.GetStatus() != nil && changes != "" {
		of.add(WriteStatus, "%s", changes)
	}
	return of.found
}

// OfRejection returns one difference if err says that the engine rejects a request, and
// none if err is another error.
func OfRejection(err error) []Difference {
	why := controller.Rejection(err)
	if why == "" {
		return nil
	}
	return []Difference{{Kind: Rejected, Rule: noRule, Detail: "the engine rejects the object", Why: cut(why)}}
}

// steps collects the steps of one decision.
type steps struct {
	rule, why string
	found     []Difference
}

func (s *steps) add(kind Kind, format string, args ...any) {
	s.found = append(s.found, Difference{Kind: kind, Rule: s.rule, Detail: cut(fmt.Sprintf(format, args...)), Why: cut(s.why)})
}

// ruleOf is the name of the first rule that is set.
func ruleOf(rules ...jobpolicyv1.Rule) string { return cmp.Or(cmp.Or(rules...).Name(), noRule) }

// reasons lists the reasons why pods are deleted, each once.
func reasons(pods []*jobpolicyv1.DeletePod) string {
	var list []string
	for _, pod := range pods {
		list = append(list, pod.GetReason().String())
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

// changed lists the fields in which a decided status differs from the stored one, with
// both values.
func changed[M proto.Message](stored, decided M) string {
	before, after := stored.ProtoReflect(), decided.ProtoReflect()
	var list []string
	fields := after.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		was, is := value(before, field), value(after, field)
		if was != is {
			list = append(list, fmt.Sprintf("%s: %s, would be %s", field.JSONName(), was, is))
		}
	}
	return strings.Join(list, "; ")
}

// value is a field as text. Equal values have equal texts.
func value(m protoreflect.Message, field protoreflect.FieldDescriptor) string {
	if field.HasPresence() && !m.Has(field) {
		return "absent"
	}
	only := m.New()
	if m.Has(field) {
		only.Set(field, m.Get(field))
	}
	switch {
	case field.Message() == nil && !field.IsList() && !field.IsMap():
		return m.Get(field).String()
	default:
		return text(only.Interface())
	}
}

// text is a message as one line of JSON. protojson varies its spaces, which are removed.
func text(m proto.Message) string {
	out, err := protojson.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return strings.NewReplacer(`": `, `":`, `, "`, `,"`, `, {`, `,{`).Replace(string(out))
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
