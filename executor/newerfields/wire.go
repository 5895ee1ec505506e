package newerfields

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// complete reports whether the type has every field of b, on every level. It is false for bytes that
// are malformed.
func (m *message) complete(b []byte) bool {
	for len(b) > 0 {
		tag, n := varint(b)
		if n < 0 {
			return false
		}
		f := m.field(tag >> 3)
		if !f.known {
			return false
		}
		b = b[n:]
		kind := protowire.Type(tag & 7)
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(1, kind, b); n < 0 {
				return false
			}
			b = b[n:]
			continue
		}
		size, n := varint(b)
		if n < 0 || size > uint64(len(b)-n) {
			return false
		}
		end := n + int(size)
		if f.within != nil && !f.within.complete(b[n:end]) {
			return false
		}
		b = b[end:]
	}
	return true
}

// varint is protowire.ConsumeVarint, and faster for numbers below 128: almost all tags and lengths.
func varint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return protowire.ConsumeVarint(b)
}

// A part is a field of a message in its bytes: the whole, the tag alone, and the value, without its
// length if it has one.
type part struct {
	number            protowire.Number
	whole, tag, value []byte
}

// next cuts the first field off b; ok is false at the end, and if b is malformed.
func next(b []byte) (p part, rest []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return part{}, nil, false
	}
	size := protowire.ConsumeFieldValue(number, kind, b[n:])
	if size < 0 {
		return part{}, nil, false
	}
	p = part{number: number, whole: b[:n+size], tag: b[:n], value: b[n : n+size]}
	if kind == protowire.BytesType {
		p.value, _ = protowire.ConsumeBytes(p.value)
	}
	return p, b[n+size:], true
}

// unknown returns what is left of b without its known fields. A known field with a value of the
// type message stays, with what is left of its value, so that each element of a list keeps its place.
func (m *message) unknown(b []byte) []byte {
	if m.complete(b) {
		return nil
	}
	var out []byte
	for p, rest, ok := next(b); ok; p, rest, ok = next(rest) {
		switch f := m.field(uint64(p.number)); {
		case !f.known:
			out = append(out, p.whole...)
		case f.within != nil:
			out = protowire.AppendBytes(append(out, p.tag...), f.within.unknown(p.value))
		}
	}
	return out
}

// merge returns typed, which has only known fields, with the unknown ones in their places: among
// the fields of a message by number, as Kubernetes encodes them.
func (m *message) merge(typed, unknown []byte) []byte {
	var own []part
	within := map[protowire.Number][][]byte{}
	for p, rest, ok := next(unknown); ok; p, rest, ok = next(rest) {
		if m.field(uint64(p.number)).within != nil {
			within[p.number] = append(within[p.number], p.value)
		} else {
			own = append(own, p)
		}
	}
	var out []byte
	for p, rest, ok := next(typed); ok; p, rest, ok = next(rest) {
		for len(own) > 0 && own[0].number < p.number {
			out, own = append(out, own[0].whole...), own[1:]
		}
		left := within[p.number]
		if len(left) == 0 {
			out = append(out, p.whole...)
			continue
		}
		out = protowire.AppendBytes(append(out, p.tag...), m.field(uint64(p.number)).within.merge(p.value, left[0]))
		within[p.number] = left[1:]
	}
	for _, p := range own {
		out = append(out, p.whole...)
	}
	return out
}

// value returns the value of the first field of a number; nil if there is none.
func value(b []byte, number protowire.Number) []byte {
	for p, rest, ok := next(b); ok; p, rest, ok = next(rest) {
		if p.number == number {
			return p.value
		}
	}
	return nil
}

// values returns the values of all fields of a number, in order.
func values(b []byte, number protowire.Number) [][]byte {
	var out [][]byte
	for p, rest, ok := next(b); ok; p, rest, ok = next(rest) {
		if p.number == number {
			out = append(out, p.value)
		}
	}
	return out
}
