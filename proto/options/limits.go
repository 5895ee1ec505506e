package options

import (
	"fmt"
	"math"
	"strconv"

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
		return fmt.Sprintf(" from %s to %s", decimal(l.Min), decimal(l.Max))
	case !math.IsInf(l.Min, 0):
		return " of at least " + decimal(l.Min)
	case !math.IsInf(l.Max, 0):
		return " of at most " + decimal(l.Max)
	}
	return ""
}

// decimal is the shortest text of a number, without an exponent: an operator's limits may be fractions.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// sized completes "expected a list".
func (l Limits) sized(of string) string {
	if math.IsInf(l.Max, 0) {
		return fmt.Sprintf(" of at least %.0f %s", l.Min, of)
	}
	return fmt.Sprintf(" of %.0f to %.0f %s", l.Min, l.Max, of)
}
