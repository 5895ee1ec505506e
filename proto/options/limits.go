package options

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits are those of a field: the option limits of the contract, and what the field's
// type allows.
type Limits struct {
	// Min and Max are the lowest and the highest value of a number, or number of items of a list, or
	// of bytes of a text. They are infinite if there is no limit.
	Min, Max float64
	// Required says that the field must be set.
	Required bool
	// Items are the limits of each item of a list; nil for all else.
	Items *Limits
}

// LimitsOf are the limits of a field.
func LimitsOf(field protoreflect.FieldDescriptor) Limits {
	set, _ := proto.GetExtension(field.Options(), jobpolicyv1.E_Limits).(*jobpolicyv1.Limits)
	if !field.IsList() {
		return limits(field.Kind(), set)
	}
	items := limits(field.Kind(), set.GetItems())
	list := limits(protoreflect.StringKind, set)
	list.Items = &items
	return list
}

func limits(kind protoreflect.Kind, set *jobpolicyv1.Limits) Limits {
	l := Limits{Min: math.Inf(-1), Max: math.Inf(1), Required: set.GetRequired()}
	switch kind {
	case protoreflect.StringKind:
		l.Min = 0
	case protoreflect.Int32Kind:
		l.Min, l.Max = math.MinInt32, math.MaxInt32
	}
	if set != nil && set.Min != nil {
		l.Min = float64(set.GetMin())
	}
	if set != nil && set.Max != nil {
		l.Max = float64(set.GetMax())
	}
	return l
}

func (l Limits) allow(n float64) bool { return n >= l.Min && n <= l.Max }

// within completes "expected a number".
func (l Limits) within() string {
	switch {
	case !math.IsInf(l.Min, 0) && !math.IsInf(l.Max, 0):
		return fmt.Sprintf(" from %.0f to %.0f", l.Min, l.Max)
	case !math.IsInf(l.Min, 0):
		return fmt.Sprintf(" of at least %.0f", l.Min)
	case !math.IsInf(l.Max, 0):
		return fmt.Sprintf(" of at most %.0f", l.Max)
	}
	return ""
}

// sized completes "expected a list".
func (l Limits) sized(of string) string {
	if math.IsInf(l.Max, 0) {
		return fmt.Sprintf(" of at least %.0f %s", l.Min, of)
	}
	return fmt.Sprintf(" of %.0f to %.0f %s", l.Min, l.Max, of)
}
