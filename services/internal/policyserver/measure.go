package policyserver

import (
	"reflect"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// maxEntries is the length of the longest list that the contract allows anywhere. The
// engine checks each list's own limit, but only after the message is decoded. An entry
// of two bytes on the wire takes a hundred bytes then.
const maxEntries = 200_000

// Sizes of decoded fields in memory, in bytes. Lists are counted twice, because they are
// copied while they grow.
const (
	pointerBytes = 8
	stringBytes  = 16
	sliceBytes   = 24
	wordBytes    = 8
	entryBytes   = 96 // of a map
	listGrowth   = 2
	// Go rounds the size of an allocation up by up to an eighth.
	sizeClass = 8
)

// A measure is what is known of a message before it is decoded.
type measure struct {
	// bytes is about what the message takes when it is decoded.
	bytes int64
	// overlong is the path of a list with more than maxEntries entries; empty if
	// there is none.
	overlong string
}

// measureMessage reads the encoded message without decoding it. It stops at invalid
// bytes, which the decoder will refuse, and when the message takes more than most bytes.
func measureMessage(b []byte, m protoreflect.MessageDescriptor, most int64) measure {
	total := measure{bytes: structBytes(m)}
	var entries map[protowire.Number]int
	for len(b) > 0 && total.bytes <= most {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return total
		}
		size := protowire.ConsumeFieldValue(number, wireType, b[n:])
		if size < 0 {
			return total
		}
		value := b[n : n+size]
		b = b[n+size:]
		field := m.Fields().ByNumber(number)
		if field == nil {
			total.bytes += listGrowth * int64(n+size) // an unknown field is kept as it is
			continue
		}
		if field.IsList() && wireType == protowire.BytesType {
			if entries == nil {
				entries = map[protowire.Number]int{}
			}
			if entries[number]++; entries[number] > maxEntries {
				total.overlong = string(field.Name())
				return total
			}
		}
		inner := measureField(value, wireType, field, most-total.bytes)
		total.bytes += inner.bytes
		if inner.overlong != "" {
			total.overlong = string(field.Name()) + "." + inner.overlong
			return total
		}
	}
	return total
}

// measureField is what one occurrence of a field adds to its message.
func measureField(value []byte, wireType protowire.Type, field protoreflect.FieldDescriptor, most int64) measure {
	if wireType != protowire.BytesType {
		if field.IsList() {
			return measure{bytes: listGrowth * wordBytes}
		}
		return measure{bytes: 2 * wordBytes} // behind a pointer, if it is optional
	}
	content, n := protowire.ConsumeBytes(value)
	if n < 0 {
		return measure{}
	}
	size := int64(len(content))
	switch {
	case field.IsMap():
		inner := measureMessage(content, field.Message(), most)
		inner.bytes += entryBytes
		return inner
	case field.Message() != nil:
		inner := measureMessage(content, field.Message(), most)
		inner.bytes += listGrowth * pointerBytes
		return inner
	case field.Kind() == protoreflect.StringKind:
		return measure{bytes: rounded(size) + listGrowth*stringBytes}
	case field.Kind() == protoreflect.BytesKind:
		return measure{bytes: rounded(size) + listGrowth*sliceBytes}
	default: // packed numbers, of one byte or more each
		return measure{bytes: listGrowth * wordBytes * size}
	}
}

// rounded is about what an allocation of n bytes takes.
func rounded(n int64) int64 { return n + n/sizeClass + wordBytes }

var structSizes sync.Map // of int64, by protoreflect.MessageDescriptor: a name as key would be allocated for each look

// structBytes is what an empty message takes.
func structBytes(m protoreflect.MessageDescriptor) int64 {
	if size, ok := structSizes.Load(m); ok {
		return size.(int64)
	}
	var size int64 = entryBytes // a map's entry has no type
	if t, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName()); err == nil {
		size = rounded(int64(reflect.TypeOf(t.Zero().Interface()).Elem().Size()))
	}
	structSizes.Store(m, size)
	return size
}
