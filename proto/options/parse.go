package options

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A Problem is one thing that is wrong with options.
type Problem struct {
	// Field is the path of the field, for example job.retryDelay.delaysSeconds[1]. Empty:
	// the whole document.
	Field string
	// Description says what was expected and what was found.
	Description string
}

// String is the problem as a sentence.
func (p Problem) String() string {
	if p.Field == "" {
		return p.Description
	}
	return p.Field + ": " + p.Description
}

// Parse reads the spec of a JobPolicy in JSON. If it returns problems, the spec holds only
// what could be read, and is not to be used.
func Parse(document []byte) (*jobpolicyv1.PolicySpec, []Problem) {
	spec := &jobpolicyv1.PolicySpec{}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var read any
	if err := decoder.Decode(&read); err != nil {
		return spec, []Problem{{Description: fmt.Sprintf("expected a JSON object, found %s", err)}}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return spec, []Problem{{Description: "expected one JSON object, found more behind it"}}
	}
	var p parser
	p.message("", spec.ProtoReflect(), read)
	return spec, append(p.problems, check("", spec.ProtoReflect(), protoreflect.FieldDescriptor.JSONName)...)
}

// A parser fills messages, and collects what is wrong.
type parser struct{ problems []Problem }

func (p *parser) expected(path, what string, found any) {
	p.problems = append(p.problems, Problem{path, fmt.Sprintf("expected %s, found %s", what, shown(found))})
}

// shown is a value as a person wrote it, cut off if it is long.
func shown(value any) string {
	const most = 64
	text, err := json.Marshal(value)
	if err != nil || len(text) <= most {
		return string(text)
	}
	return strings.ToValidUTF8(string(text[:most]), "") + "…"
}

func (p *parser) message(path string, into protoreflect.Message, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		p.expected(path, "an object", value)
		return
	}
	fields := into.Descriptor().Fields()
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field, at := fields.ByJSONName(name), join(path, name)
		switch {
		case field == nil:
			p.problems = append(p.problems, Problem{at, "there is no such field, expected one of " + fieldNames(fields)})
		case object[name] == nil: // null is absent, as in Kubernetes.
		case field.IsList():
			p.list(at, into.Mutable(field).List(), field, object[name])
		case field.Kind() == protoreflect.MessageKind:
			p.message(at, into.Mutable(field).Message(), object[name])
		default:
			if v, ok := p.scalar(at, field, object[name]); ok {
				into.Set(field, v)
			}
		}
	}
}

func (p *parser) list(path string, into protoreflect.List, field protoreflect.FieldDescriptor, value any) {
	items, ok := value.([]any)
	if !ok {
		p.expected(path, "a list", value)
		return
	}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if field.Kind() == protoreflect.MessageKind {
			p.message(at, into.AppendMutable().Message(), item)
		} else if v, ok := p.scalar(at, field, item); ok {
			into.Append(v)
		}
	}
}

func (p *parser) scalar(path string, field protoreflect.FieldDescriptor, value any) (protoreflect.Value, bool) {
	what := typeOf(field)
	switch field.Kind() {
	case protoreflect.BoolKind:
		if b, ok := value.(bool); ok {
			return protoreflect.ValueOfBool(b), true
		}
	case protoreflect.StringKind:
		if text, ok := value.(string); ok {
			return protoreflect.ValueOfString(text), true
		}
	case protoreflect.EnumKind:
		if number, ok := EnumValue(field.Enum(), value); ok {
			return protoreflect.ValueOfEnum(number), true
		}
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.DoubleKind:
		if number, ok := value.(json.Number); ok {
			if v, ok := numberOf(field.Kind(), number); ok {
				return v, true
			}
			what += LimitsOf(field).within()
		}
	}
	p.expected(path, what, value)
	return protoreflect.Value{}, false
}

func numberOf(kind protoreflect.Kind, number json.Number) (protoreflect.Value, bool) {
	if kind == protoreflect.DoubleKind {
		f, err := number.Float64()
		return protoreflect.ValueOfFloat64(f), err == nil
	}
	n, err := number.Int64()
	if kind == protoreflect.Int32Kind {
		return protoreflect.ValueOfInt32(int32(n)), err == nil && n >= math.MinInt32 && n <= math.MaxInt32
	}
	return protoreflect.ValueOfInt64(n), err == nil
}

// typeOf says what a value of a field looks like.
func typeOf(field protoreflect.FieldDescriptor) string {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.StringKind:
		return "a text"
	case protoreflect.EnumKind:
		return "one of " + strings.Join(EnumNames(field.Enum()), ", ")
	case protoreflect.DoubleKind:
		return "a number"
	}
	return "a whole number"
}

func fieldNames(fields protoreflect.FieldDescriptors) string {
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = fields.Get(i).JSONName()
	}
	return strings.Join(names, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
