package newerfields

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A message is a protobuf message as the compiled type has it: its fields, by number.
type message []field

type field struct {
	known bool
	// within describes the field's value; nil if the value is taken as it is.
	within *message
}

// field returns the field of a number; the zero value if the type has none.
func (m *message) field(number uint64) field {
	if number < uint64(len(*m)) {
		return (*m)[number]
	}
	return field{}
}

// messages describes the kinds of objects that are read and written back, or that are made of a
// template. Kinds that are only patched or deleted are not among them.
var messages = sync.OnceValue(func() map[reflect.Type]*message {
	seen, roots := map[reflect.Type]*message{}, map[reflect.Type]*message{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[batchv1.Job](), reflect.TypeFor[batchv1.CronJob](), reflect.TypeFor[corev1.Pod](),
		reflect.TypeFor[coordinationv1.Lease](), reflect.TypeFor[corev1.Secret](),
	} {
		roots[t] = describe(t, seen)
	}
	return roots
})

// describe makes the message of a struct from the tags of its fields. It returns nil for a type
// whose fields have no tags: a time or a quantity.
func describe(t reflect.Type, seen map[reflect.Type]*message) *message {
	if m, ok := seen[t]; ok {
		return m
	}
	m := &message{}
	seen[t] = m
	for i := range t.NumField() {
		number, ok := fieldNumber(t.Field(i))
		if !ok {
			continue
		}
		for len(*m) <= number {
			*m = append(*m, field{})
		}
		(*m)[number].known = true
		if e := elementOf(t.Field(i).Type); e.Kind() == reflect.Struct && !rewritten(t, t.Field(i).Type) {
			(*m)[number].within = describe(e, seen)
		}
	}
	if len(*m) == 0 && t.NumField() > 0 {
		m = nil
	}
	seen[t] = m
	return m
}

// fieldNumber reads the number in a tag such as protobuf:"bytes,1,opt,name=metadata".
func fieldNumber(f reflect.StructField) (int, bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, false
	}
	number, err := strconv.Atoi(parts[1])
	return number, err == nil
}

// elementOf returns the type of a pointer's target, or of a list's element.
func elementOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// rewritten reports whether a list is written anew, so that its elements have no fixed places:
// the lists of a status, and the managed fields.
func rewritten(parent, t reflect.Type) bool {
	switch parent {
	case reflect.TypeFor[batchv1.JobStatus](), reflect.TypeFor[batchv1.CronJobStatus]():
		return t.Kind() == reflect.Slice
	}
	return t == reflect.TypeFor[[]metav1.ManagedFieldsEntry]()
}
