package engine_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// epoch is second 0 of every scenario. Times are written as offsets from it.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func at(offset time.Duration) *timestamppb.Timestamp { return timestamppb.New(epoch.Add(offset)) }

// uid makes a UID of a short readable name.
func uid(name string) []byte {
	b := make([]byte, 16)
	copy(b, name)
	return b
}

// numberedUID makes the UID of the n-th pod.
func numberedUID(n int) []byte {
	b := make([]byte, 16)
	binary.BigEndian.PutUint64(b[8:], uint64(n)+1)
	return b
}

// uidName is the reverse of uid and numberedUID.
func uidName(b []byte) string {
	if len(b) == 16 && b[0] == 0 {
		return fmt.Sprintf("pod%d", binary.BigEndian.Uint64(b[8:])-1)
	}
	return strings.TrimRight(string(b), "\x00")
}

// render writes a message with one field a line, in the order of the proto file. It
// prints every field that is set, also those of later versions. The formats of the
// protobuf runtime are unstable on purpose; this one is stable.
func render(m proto.Message) string {
	var b strings.Builder
	renderFields(&b, m.ProtoReflect(), "")
	return b.String()
}

func renderFields(b *strings.Builder, m protoreflect.Message, indent string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) {
			continue
		}
		if !fd.IsList() {
			renderField(b, fd, m.Get(fd), indent)
			continue
		}
		list := m.Get(fd).List()
		if fd.Kind() == protoreflect.BytesKind {
			fmt.Fprintf(b, "%s%s:", indent, fd.Name())
			for j := range list.Len() {
				fmt.Fprintf(b, " %s", uidName(list.Get(j).Bytes()))
			}
			b.WriteByte('\n')
			continue
		}
		for j := range list.Len() {
			renderField(b, fd, list.Get(j), indent)
		}
	}
}

func renderField(b *strings.Builder, fd protoreflect.FieldDescriptor, v protoreflect.Value, indent string) {
	if fd.Kind() == protoreflect.MessageKind && blockMessage(v.Message()) {
		fmt.Fprintf(b, "%s%s:\n", indent, fd.Name())
		renderFields(b, v.Message(), indent+"  ")
		return
	}
	fmt.Fprintf(b, "%s%s: %s\n", indent, fd.Name(), inline(fd, v))
}

// blockMessage reports whether a message is written over several lines.
func blockMessage(m protoreflect.Message) bool {
	switch m.Interface().(type) {
	case *jobpolicyv1.JobStatus, *jobpolicyv1.Explanation, *jobpolicyv1.UncountedTerminatedPods, *jobpolicyv1.CreatePods:
		return true
	}
	return false
}

func inline(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch fd.Kind() {
	case protoreflect.BytesKind:
		return uidName(v.Bytes())
	case protoreflect.EnumKind:
		if fd.Enum().FullName() == "jobpolicy.v1.Rule" {
			return jobpolicyv1.Rule(v.Enum()).Name()
		}
		return enumName(fd.Enum(), v.Enum())
	case protoreflect.MessageKind:
		return inlineMessage(v.Message())
	case protoreflect.StringKind:
		if s := v.String(); strings.ContainsAny(s, " \"") && fd.Name() != "summary" && fd.Name() != "detail" {
			return fmt.Sprintf("%q", s)
		}
		return v.String()
	}
	return fmt.Sprint(v.Interface())
}

// enumName is an enum value's name without the enum's own name in front.
func enumName(ed protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	value := ed.Values().ByNumber(n)
	if value == nil {
		return fmt.Sprint(n)
	}
	zero := string(ed.Values().ByNumber(0).Name())
	return strings.TrimPrefix(string(value.Name()), strings.TrimSuffix(zero, "UNSPECIFIED"))
}

func inlineMessage(m protoreflect.Message) string {
	switch m := m.Interface().(type) {
	case *timestamppb.Timestamp:
		return m.AsTime().Sub(epoch).String()
	case *jobpolicyv1.IndexSet:
		return indexText(m)
	case *jobpolicyv1.RuleAnswer:
		mark := "-"
		if m.GetDecided() {
			mark = "DECIDES"
		}
		return fmt.Sprintf("%s %s: %s", m.GetRule().Name(), mark, m.GetDetail())
	}
	var parts []string
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case !m.Has(fd):
		case fd.IsList():
			parts = append(parts, fmt.Sprintf("%s=%s", fd.Name(), inlineList(fd, m.Get(fd).List())))
		default:
			parts = append(parts, fmt.Sprintf("%s=%s", fd.Name(), inline(fd, m.Get(fd))))
		}
	}
	return strings.Join(parts, " ")
}

func inlineList(fd protoreflect.FieldDescriptor, list protoreflect.List) string {
	parts := make([]string, list.Len())
	for i := range parts {
		parts[i] = inline(fd, list.Get(i))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func indexText(m *jobpolicyv1.IndexSet) string {
	var parts []string
	for _, r := range m.GetRanges() {
		if r.GetFirst() == r.GetLast() {
			parts = append(parts, fmt.Sprint(r.GetFirst()))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d-%d", r.GetFirst(), r.GetLast()))
	}
	return "[" + strings.Join(parts, ",") + "]"
}
