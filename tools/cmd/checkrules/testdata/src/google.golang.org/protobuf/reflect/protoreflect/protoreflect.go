// Package protoreflect stands in for the real one: only the methods that walk in random order.
package protoreflect

// Message has fields that are walked in random order.
type Message interface {
	Range(f func(field, value any) bool)
}

// Map has entries that are walked in random order.
type Map interface {
	Range(f func(key, value any) bool)
}
