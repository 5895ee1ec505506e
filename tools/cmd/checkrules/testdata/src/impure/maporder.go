package impure

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

func leaky(m map[string]int, msg protoreflect.Message, field protoreflect.Map) []string {
	var out []string
	for k := range m { // want `range over a map: the order is random`
		out = append(out, k)
	}
	for range m { /* want `range over a map: the order is random` */ // order does not matter:
	}
	// The order does not matter here, but the comment does not say so in the agreed words.
	for k := range m { // want `range over a map: the order is random`
		out = append(out, k)
	}
	out = append(out, slices.Collect(maps.Keys(m))...) // want `maps.Keys: the order is random`
	for range maps.Values(m) {                         // want `maps.Values: the order is random`
	}
	for k := range maps.All(m) { // want `maps.All: the order is random`
		out = append(out, k)
	}
	msg.Range(func(_, _ any) bool { return true })   // want `protoreflect.Message.Range: the order is random`
	field.Range(func(_, _ any) bool { return true }) // want `protoreflect.Map.Range: the order is random`
	return out
}

type table map[string]int

func leakyGeneric[M ~map[string]int](t table, m M) (n int) {
	for _, v := range t { // want `range over a map: the order is random`
		n -= v
	}
	for _, v := range m { // want `range over a map: the order is random`
		n -= v
	}
	return n
}
