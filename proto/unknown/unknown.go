// Package unknown finds what a newer version of the contract put into a message:
// fields and enum values that this version does not know. The engine checks requests
// with it, and the executor checks responses: a message that is only partly understood
// would lead to a wrong decision, or to a decision that is carried out in part.
package unknown

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Field numbers that the contract reserves, in every message, for fields that a program
// may ignore if it does not know them. An old program sees only the number of a new field.
const (
	firstIgnorable = 1000
	lastIgnorable  = 1999
)

// Ignorable reports whether a field with this number may be ignored by a program that
// does not know it.
func Ignorable(number protowire.Number) bool {
	return number >= firstIgnorable && number <= lastIgnorable
}

// Found is the first unknown of a message.
type Found struct {
	// Path is where it stands, in proto field names: unaccounted_pods[3].phase. A field
	// whose name is not known stands by its number: spec.21.
	Path string
	// What completes a sentence that begins with Path: "is the number of an unknown field".
	What string
}

// Field is what is found for a field with this number.
func Field(number protowire.Number) *Found {
	return &Found{Path: strconv.Itoa(int(number)), What: "is the number of an unknown field"}
}

// A Finder looks for unknowns in messages of a few kinds. It is safe for concurrent use.
type Finder struct {
	plans   map[protoreflect.FullName]*plan
	ignored []protoreflect.FullName
}

// NewFinder returns a Finder for such messages. It does not look at the fields in
// ignored: their unknown values have no effect, nor do unknown parts inside them.
func NewFinder(ignored []protoreflect.FullName, messages ...proto.Message) *Finder {
	f := &Finder{plans: map[protoreflect.FullName]*plan{}, ignored: ignored}
	for _, m := range messages {
		f.add(m.ProtoReflect().Descriptor())
	}
	return f
}

// Find returns the first unknown of a message that is one of the Finder's kinds, at any
// depth; nil if there is none. It checks the fields in the order of their declaration,
// so that it always finds the same one. It allocates nothing for a row, except for a
// list in it.
func (f *Finder) Find(message proto.Message) *Found {
	m := message.ProtoReflect()
	return f.plans[m.Descriptor().FullName()].check(m)
}

// A plan lists the fields of a message that can hold something unknown: all that are
// messages or enums.
type plan []look

// A look is one such field. Exactly one of message and values is set.
type look struct {
	field   protoreflect.FieldDescriptor
	message *plan
	values  protoreflect.EnumValueDescriptors
}

// add returns the plan of a message, and makes it if there is none.
func (f *Finder) add(message protoreflect.MessageDescriptor) *plan {
	if p := f.plans[message.FullName()]; p != nil {
		return p
	}
	p := &plan{}
	f.plans[message.FullName()] = p // before its fields: a message may hold itself
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		switch {
		case slices.Contains(f.ignored, field.FullName()):
		case field.IsMap(): // The contract's maps hold texts only.
		case field.Message() != nil:
			*p = append(*p, look{field: field, message: f.add(field.Message())})
		case field.Enum() != nil:
			*p = append(*p, look{field: field, values: field.Enum().Values()})
		}
	}
	return p
}

// check returns the first unknown of a message; its Path is relative to m.
func (p *plan) check(m protoreflect.Message) *Found {
	if number, found := firstUnknown(m.GetUnknown()); found {
		return Field(number)
	}
	for i := range *p {
		if found := (*p)[i].in(m); found != nil {
			return found
		}
	}
	return nil
}

// in looks at one field of m.
func (l *look) in(m protoreflect.Message) *Found {
	if !m.Has(l.field) {
		return nil
	}
	name, value := string(l.field.Name()), m.Get(l.field)
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
func (l *look) check(value protoreflect.Value) *Found {
	if l.message != nil {
		return l.message.check(value.Message())
	}
	if number := value.Enum(); l.values.ByNumber(number) == nil {
		return &Found{What: fmt.Sprintf("has the unknown value %d", number)}
	}
	return nil
}

// at puts the path of the message before the path in it; nil stays nil.
func (f *Found) at(path string) *Found {
	switch {
	case f == nil:
	case f.Path == "":
		f.Path = path
	default:
		f.Path = path + "." + f.Path
	}
	return f
}

// firstUnknown returns the number of the first field that must not be ignored.
func firstUnknown(fields protoreflect.RawFields) (protowire.Number, bool) {
	for len(fields) > 0 {
		number, _, size := protowire.ConsumeField(fields)
		if size < 0 || !Ignorable(number) { // Decoded messages hold whole fields only.
			return number, true
		}
		fields = fields[size:]
	}
	return 0, false
}
