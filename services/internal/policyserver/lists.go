package policyserver

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxEntries is the length of the longest list that the contract allows
// anywhere. The engine knows each list's own limit, but only once the message is
// decoded, and an entry that takes two bytes on the wire takes a hundred then.
const maxEntries = 200_000

// overlongList returns the path of a list in the encoded message with more than
// maxEntries entries; empty if there is none. Bytes that are no message are left
// to the decoder to refuse.
func overlongList(b []byte, m protoreflect.MessageDescriptor) string {
	var entries map[protowire.Number]int
	for len(b) > 0 {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return ""
		}
		size := protowire.ConsumeFieldValue(number, wireType, b[n:])
		if size < 0 {
			return ""
		}
		value := b[n : n+size]
		b = b[n+size:]
		field := m.Fields().ByNumber(number)
		if field == nil || wireType != protowire.BytesType {
			continue
		}
		if field.IsList() {
			if entries == nil {
				entries = map[protowire.Number]int{}
			}
			if entries[number]++; entries[number] > maxEntries {
				return string(field.Name())
			}
		}
		if inner := overlongInner(value, field); inner != "" {
			return string(field.Name()) + "." + inner
		}
	}
	return ""
}

func overlongInner(value []byte, field protoreflect.FieldDescriptor) string {
	if field.Message() == nil {
		return ""
	}
	content, n := protowire.ConsumeBytes(value)
	if n < 0 {
		return ""
	}
	return overlongList(content, field.Message())
}
