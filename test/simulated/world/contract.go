package world

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// usedPart begins the names in network.reached of the parts of the contract that were used.
const usedPart = "contract: "

// rarelyUsed are parts of the contract that only few worlds use, or none.
var rarelyUsed = map[string]string{
	"DecideJobRequest.in_flight":          "a creation that the next list does not settle",
	"DecideJobRequest.namespace_deleting": "a namespace that is deleted while pods must be created",
	"DecideCronJobRequest.names_taken":    "a name that a Job of somebody else has",
	"DecideCronJobRequest.deferrals":      "a creation of a Job that was refused",
	"DecideCronJobRequest.explain":        "for other callers: the executor wants every explanation",
}

// partsOfTheContract are the fields of requests, and the dispositions and requirements of answers.
func partsOfTheContract() (parts []string) {
	for _, m := range []proto.Message{&jobpolicyv1.DecideJobRequest{}, &jobpolicyv1.DecideCronJobRequest{}} {
		fields := m.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			parts = append(parts, part(fields.Get(i)))
		}
	}
	for _, names := range []map[int32]string{jobpolicyv1.Disposition_name, jobpolicyv1.Requirement_name} {
		for number, name := range names {
			if number != 0 {
				parts = append(parts, name)
			}
		}
	}
	return parts
}

func part(field protoreflect.FieldDescriptor) string {
	return strings.TrimPrefix(string(field.FullName()), "jobpolicy.v1.")
}

// used records which parts of the contract a question and its answer use.
func (d decider) used(question, answer proto.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	question.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		d.reached[usedPart+part(field)] = true
		return true
	})
	a := answer.(interface {
		GetDisposition() jobpolicyv1.Disposition
		GetRequirements() []jobpolicyv1.Requirement
	})
	d.reached[usedPart+a.GetDisposition().String()] = true
	for _, r := range a.GetRequirements() {
		d.reached[usedPart+r.String()] = true
	}
}

// unused lists the parts of the contract that no world of the tally has used, and that are not
// known to be used rarely: the caller or the engine has code for them that never runs.
func (t *tally) unused() (parts []string) {
	for _, name := range partsOfTheContract() {
		if !t.contract[name] && rarelyUsed[name] == "" {
			parts = append(parts, name)
		}
	}
	return parts
}
