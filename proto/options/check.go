package options

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Check finds the fields of a message that break their limits, or that make no sense
// together, at any depth. Fields have the names of the contract.
func Check(m proto.Message) []Problem {
	return check("", m.ProtoReflect(), func(field protoreflect.FieldDescriptor) string { return string(field.Name()) })
}

func check(path string, m protoreflect.Message, name func(protoreflect.FieldDescriptor) string) []Problem {
	var problems []Problem
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		at, limits := join(path, name(field)), LimitsOf(field)
		switch {
		case m.Has(field):
			problems = append(problems, checkField(at, field, m.Get(field), limits, name)...)
		case limits.Required:
			problems = append(problems, Problem{at, "is required"})
		}
	}
	return append(problems, together(path, m, name)...)
}

func checkField(path string, field protoreflect.FieldDescriptor, value protoreflect.Value, limits Limits, name func(protoreflect.FieldDescriptor) string) []Problem {
	if !field.IsList() {
		return checkValue(path, field, value, limits, name)
	}
	list := value.List()
	if n := list.Len(); !limits.allow(float64(n)) {
		return []Problem{{path, fmt.Sprintf("expected a list%s, found %d", limits.sized("items"), n)}}
	}
	var problems []Problem
	for i := range list.Len() {
		problems = append(problems, checkValue(fmt.Sprintf("%s[%d]", path, i), field, list.Get(i), *limits.Items, name)...)
	}
	return problems
}

func checkValue(path string, field protoreflect.FieldDescriptor, value protoreflect.Value, limits Limits, name func(protoreflect.FieldDescriptor) string) []Problem {
	var n float64
	switch field.Kind() {
	case protoreflect.MessageKind:
		return check(path, value.Message(), name)
	case protoreflect.StringKind:
		if n := len(value.String()); !limits.allow(float64(n)) {
			return []Problem{{path, fmt.Sprintf("expected a text%s, found %d", limits.sized("bytes"), n)}}
		}
		return nil
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		n = float64(value.Int())
	case protoreflect.DoubleKind:
		n = value.Float()
	default:
		return nil
	}
	if limits.allow(n) {
		return nil
	}
	return []Problem{{path, fmt.Sprintf("expected %s%s, found %v", typeOf(field), limits.within(), value.Interface())}}
}
