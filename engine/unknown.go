package engine

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The contract reserves these field numbers, in every message of a request, for
// fields that an engine may ignore if it does not know them.
const (
	firstIgnorable = 1000
	lastIgnorable  = 1999
)

// Ignorable reports whether a field with this number may be ignored by an engine
// that does not know it.
func Ignorable(number protowire.Number) bool {
	return number >= firstIgnorable && number <= lastIgnorable
}

// ignoredValues are the enum fields whose unknown values have no effect; the
// contract says so at the enum.
var ignoredValues = map[protoreflect.FullName]bool{
	"jobpolicy.v1.Deferral.step": true, // The caller refuses a decision that takes the step all the same.
}

// CheckKnown returns an *UnsupportedError if a request has a field or an enum value,
// at any depth, that this engine does not know and must not ignore. A decision on a
// request that is only partly understood would be wrong. It checks the fields in the
// order of their declaration, so that the same request is always refused for the same
// reason. It allocates nothing for a row, except for a list in it.
func CheckKnown(req proto.Message) error {
	m := req.ProtoReflect()
	if found := planOf(m.Descriptor()).check(m); found != nil {
		return found
	}
	return nil
}

// Unsupported is the error of a field whose number this engine does not know, in
// the message at path; empty for the request itself.
func Unsupported(path string, number protowire.Number) *UnsupportedError {
	return &UnsupportedError{
		Field:       join(path, strconv.Itoa(int(number))),
		Description: "is the number of a field that this engine does not know; it needs a newer one",
	}
}

// A lookPlan lists the fields of a message that can hold something unknown: all
// that are messages or enums.
type lookPlan []look

// A look is one field of a lookPlan. Exactly one of message and values is set.
type look struct {
	field   protoreflect.FieldDescriptor
	message *lookPlan
	values  protoreflect.EnumValueDescriptors
}

// plans are made once for each kind of request, because most requests are small.
var plans = plansOf(
	&jobpolicyv1.DecideJobRequest{},
	&jobpolicyv1.DecideCronJobRequest{},
	&jobpolicyv1.CheckJobStatusRequest{},
	&jobpolicyv1.MatchPodFailurePolicyRequest{},
	&jobpolicyv1.MatchSuccessPolicyRequest{},
	&jobpolicyv1.ComputePodBackoffRequest{},
	&jobpolicyv1.ChoosePodsToDeleteRequest{},
	&jobpolicyv1.ComputeIndexesRequest{},
	&jobpolicyv1.ComputeDeadlinesRequest{},
	&jobpolicyv1.ListScheduledRunsRequest{},
)

func plansOf(requests ...proto.Message) map[protoreflect.FullName]*lookPlan {
	made := map[protoreflect.FullName]*lookPlan{}
	for _, req := range requests {
		addPlan(made, req.ProtoReflect().Descriptor())
	}
	return made
}

// planOf returns the plan of a message, and makes one for a message that no
// request holds.
func planOf(message protoreflect.MessageDescriptor) *lookPlan {
	if plan := plans[message.FullName()]; plan != nil {
		return plan
	}
	return addPlan(map[protoreflect.FullName]*lookPlan{}, message)
}

// addPlan returns the plan of a message from made, or adds it.
func addPlan(made map[protoreflect.FullName]*lookPlan, message protoreflect.MessageDescriptor) *lookPlan {
	if plan := made[message.FullName()]; plan != nil {
		return plan
	}
	plan := &lookPlan{}
	made[message.FullName()] = plan // before its fields: a message may hold itself
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		switch {
		case field.IsMap(): // The contract's maps hold texts only.
		case field.Message() != nil:
			*plan = append(*plan, look{field: field, message: addPlan(made, field.Message())})
		case field.Enum() != nil && !ignoredValues[field.FullName()]:
			*plan = append(*plan, look{field: field, values: field.Enum().Values()})
		}
	}
	return plan
}

// check returns the first unknown of a message; its Field is relative to m.
func (plan *lookPlan) check(m protoreflect.Message) *UnsupportedError {
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		if number, found := firstUnknown(unknown); found {
			return Unsupported("", number)
		}
	}
	for i := range *plan {
		if found := (*plan)[i].in(m); found != nil {
			return found
		}
	}
	return nil
}

// in looks at one field of m.
func (l *look) in(m protoreflect.Message) *UnsupportedError {
	if !m.Has(l.field) {
		return nil
	}
	name := string(l.field.Name())
	value := m.Get(l.field)
	if !l.field.IsList() {
		return l.check(value).at(name)
	}
	list := value.List()
	for i := range list.Len() {
		if found := l.check(list.Get(i)); found != nil {
			return found.at(fmt.Sprintf("%s[%d]", name, i))
		}
	}
	return nil
}

// check looks at one value of the field.
func (l *look) check(value protoreflect.Value) *UnsupportedError {
	if l.message != nil {
		return l.message.check(value.Message())
	}
	if number := value.Enum(); l.values.ByNumber(number) == nil {
		return &UnsupportedError{Description: fmt.Sprintf("has the value %d, which this engine does not know; it needs a newer one", number)}
	}
	return nil
}

// at puts the path of the message before the field. For nil it returns nil.
func (e *UnsupportedError) at(path string) *UnsupportedError {
	if e != nil {
		e.Field = join(path, e.Field)
	}
	return e
}

func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}

// firstUnknown returns the number of the first field that must not be ignored.
func firstUnknown(fields protoreflect.RawFields) (protowire.Number, bool) {
	for len(fields) > 0 {
		number, _, size := protowire.ConsumeField(fields)
		if size < 0 || !Ignorable(number) { // Decoded requests hold whole fields only.
			return number, true
		}
		fields = fields[size:]
	}
	return 0, false
}
