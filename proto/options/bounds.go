package options

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Bounds are an operator's limits of fields with numbers, beside those of the contract: by the path of
// the field without the positions in lists, for example job.retryDelay.delaysSeconds. A field that is
// absent keeps them.
type Bounds map[string]Limits

// Set adds a limit: FIELD=MIN:MAX, of which MIN or MAX may be left out. For a list it is that of each item.
func (b Bounds) Set(text string) error {
	path, span, _ := strings.Cut(text, "=")
	low, high, ok := strings.Cut(span, ":")
	if !ok || span == ":" {
		return fmt.Errorf("%q: expected FIELD=MIN:MAX, of which MIN or MAX may be left out", text)
	}
	if !hasNumber((&jobpolicyv1.PolicySpec{}).ProtoReflect().Descriptor(), path) {
		return fmt.Errorf("%q: no field with a number is called %q in the spec of a JobPolicy", text, path)
	}
	limits := Limits{Min: math.Inf(-1), Max: math.Inf(1)}
	for _, side := range []struct {
		text string
		into *float64
	}{{low, &limits.Min}, {high, &limits.Max}} {
		if side.text == "" {
			continue
		}
		n, err := strconv.ParseFloat(side.text, 64)
		if err != nil || math.IsNaN(n) {
			return fmt.Errorf("%q: expected numbers around the colon, found %q", text, side.text)
		}
		*side.into = n
	}
	if limits.Min > limits.Max {
		return fmt.Errorf("%q: expected MIN to be at most MAX", text)
	}
	b[path] = limits
	return nil
}

func hasNumber(message protoreflect.MessageDescriptor, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	field := message.Fields().ByJSONName(name)
	switch {
	case field == nil:
		return false
	case deeper:
		return field.Message() != nil && hasNumber(field.Message(), rest)
	}
	return isNumber(field)
}

func isNumber(field protoreflect.FieldDescriptor) bool {
	switch field.Kind() {
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.DoubleKind:
		return true
	}
	return false
}

// Check finds the fields of a spec that break the limits.
func (b Bounds) Check(spec *jobpolicyv1.PolicySpec) []Problem {
	if len(b) == 0 {
		return nil
	}
	var problems []Problem
	b.check("", "", spec.ProtoReflect(), &problems)
	return problems
}

// check finds the fields of a message at a path; at is the same path with the positions in lists.
func (b Bounds) check(path, at string, m protoreflect.Message, problems *[]Problem) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		path, at, value := join(path, field.JSONName()), join(at, field.JSONName()), m.Get(field)
		switch {
		case !m.Has(field):
		case !field.IsList():
			b.checkValue(path, at, field, value, problems)
		default:
			for k := range value.List().Len() {
				b.checkValue(path, fmt.Sprintf("%s[%d]", at, k), field, value.List().Get(k), problems)
			}
		}
	}
}

func (b Bounds) checkValue(path, at string, field protoreflect.FieldDescriptor, value protoreflect.Value, problems *[]Problem) {
	limits, limited := b[path]
	switch {
	case field.Message() != nil:
		b.check(path, at, value.Message(), problems)
	case limited && !limits.allow(number(field, value)):
		*problems = append(*problems, Problem{at, fmt.Sprintf("expected %s%s (a limit of this cluster), found %v", typeOf(field), limits.within(), value.Interface())})
	}
}

func number(field protoreflect.FieldDescriptor, value protoreflect.Value) float64 {
	if field.Kind() == protoreflect.DoubleKind {
		return value.Float()
	}
	return float64(value.Int())
}
