package explain

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// Options are the options that a Job or CronJob has by a JobPolicy.
type Options struct {
	// From says where they are (wire.PolicyOrigin).
	From string `json:"from"`
	// Unread: they cannot be read, and no earlier ones are known.
	Unread bool `json:"unread,omitempty"`
	// LastValid: they cannot be read, and these are the last valid ones.
	LastValid bool `json:"lastValid,omitempty"`
	// Set are those that are set, in the order of the contract.
	Set []Option `json:"set,omitempty"`
}

// An Option is one that is set. Its name begins with job or cronJob, as in a JobPolicy.
type Option struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// OptionsOf lists the options in a JobOptions or CronJobOptions, which are in from; nil if that is empty. If they are not
// readable, o has the last valid ones, or is a nil message.
func OptionsOf(from string, o proto.Message, readable bool) *Options {
	if from == "" {
		return nil
	}
	known := o.ProtoReflect().IsValid()
	out := &Options{From: from, Unread: !readable && !known, LastValid: !readable && known}
	section := "job."
	if _, cron := o.(*jobpolicyv1.CronJobOptions); cron {
		section = "cronJob."
	}
	eachSet(o.ProtoReflect(), func(field protoreflect.FieldDescriptor, value protoreflect.Value) {
		out.Set = append(out.Set, Option{section + field.JSONName(), valueText(field, value)})
	})
	return out
}

// Options are those of the Job. Nil: it asks for none, or nobody reads them.
func (f Facts) Options() *Options {
	if !TakesOptions(f) {
		return nil
	}
	policy, problems := wire.PolicySpec(f.Job.Annotations)
	return OptionsOf(originOf(f.OptionsFrom, f.Job.Namespace, f.Job.Annotations), policy.GetJob(), len(problems) == 0)
}

// originOf is where options are: from, or, if nobody has said it, what the annotations say.
func originOf(from, namespace string, annotations map[string]string) string {
	if from != "" {
		return from
	}
	return wire.PolicyOrigin(namespace, annotations, "")
}

// String is the list in one line.
func (o *Options) String() string {
	if o.Unread {
		return o.From + ": cannot be read"
	}
	from := o.From
	if o.LastValid {
		from += ": cannot be read; the last valid ones"
	}
	if len(o.Set) == 0 {
		return from + ": none"
	}
	var set []string
	for _, option := range o.Set {
		set = append(set, option.Name+" "+option.Value)
	}
	return from + ": " + strings.Join(set, "; ")
}

// eachSet calls f with the fields that are set, in the order of the contract.
func eachSet(m protoreflect.Message, f func(protoreflect.FieldDescriptor, protoreflect.Value)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); m.Has(field) {
			f(field, m.Get(field))
		}
	}
}

// valueText writes a value as a JobPolicy has it, without quotes and braces.
func valueText(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	if !field.IsList() {
		return itemText(field, value)
	}
	var items []string
	for i := range value.List().Len() {
		items = append(items, itemText(field, value.List().Get(i)))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func itemText(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	switch field.Kind() {
	case protoreflect.EnumKind:
		return options.EnumName(field.Enum(), field.Enum().Values().ByNumber(value.Enum()))
	case protoreflect.DoubleKind:
		return strconv.FormatFloat(value.Float(), 'f', -1, 64)
	case protoreflect.MessageKind:
		var parts []string
		eachSet(value.Message(), func(field protoreflect.FieldDescriptor, value protoreflect.Value) {
			parts = append(parts, field.JSONName()+" "+valueText(field, value))
		})
		text := strings.Join(parts, ", ")
		if field.IsList() {
			text = "{" + text + "}"
		}
		return text
	}
	return fmt.Sprint(value)
}
