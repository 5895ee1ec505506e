package options

import (
	"encoding/json"

	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Format writes the spec of a JobPolicy as JSON, in the way that Parse reads. Equal specs have the same text.
func Format(spec *jobpolicyv1.PolicySpec) string {
	text, err := json.Marshal(written(spec.ProtoReflect()))
	if err != nil {
		panic("options hold only texts, numbers and booleans: " + err.Error())
	}
	return string(text)
}

// written are the fields that are set, by their names in JSON.
func written(m protoreflect.Message) map[string]any {
	fields := map[string]any{}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if !field.IsList() {
			fields[field.JSONName()] = writtenValue(field, value)
			return true
		}
		list := make([]any, value.List().Len())
		for i := range list {
			list[i] = writtenValue(field, value.List().Get(i))
		}
		fields[field.JSONName()] = list
		return true
	})
	return fields
}

func writtenValue(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return written(value.Message())
	case protoreflect.EnumKind:
		return EnumName(field.Enum(), field.Enum().Values().ByNumber(value.Enum()))
	}
	return value.Interface()
}
