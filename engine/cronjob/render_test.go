package cronjob_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// render writes a decision with one field a line, in the order of the proto
// file: whatever it holds is printed. The rules that did not decide are left out
// unless they are asked for.
func render(resp *jobpolicyv1.DecideCronJobResponse, rules bool) string {
	resp = proto.CloneOf(resp)
	if e := resp.GetExplanation(); !rules && len(e.GetRules()) > 0 {
		e.Rules = e.Rules[len(e.Rules)-1:]
		e.DecidingRule = jobpolicyv1.Rule_RULE_UNSPECIFIED
	}
	var b strings.Builder
	renderFields(&b, resp.ProtoReflect(), "")
	return b.String()
}

func renderMessage(m proto.Message, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n", name)
	renderFields(&b, m.ProtoReflect(), "  ")
	return b.String()
}

func renderFields(b *strings.Builder, m protoreflect.Message, indent string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) {
			continue
		}
		values := []protoreflect.Value{m.Get(fd)}
		if fd.IsList() {
			values = nil
			for j := range m.Get(fd).List().Len() {
				values = append(values, m.Get(fd).List().Get(j))
			}
		}
		for _, v := range values {
			if isBlock(fd, v) {
				fmt.Fprintf(b, "%s%s:\n", indent, fd.Name())
				renderFields(b, v.Message(), indent+"  ")
				continue
			}
			fmt.Fprintf(b, "%s%s: %s\n", indent, fd.Name(), inline(fd, v))
		}
	}
}

func isBlock(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	if fd.Message() == nil || fd.IsMap() {
		return false
	}
	switch v.Message().Interface().(type) {
	case *jobpolicyv1.CronJobExplanation, *jobpolicyv1.CronJobStatus:
		return true
	}
	return false
}

func inline(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case fd.IsMap():
		return inlineMap(v.Map())
	case fd.Kind() == protoreflect.BytesKind:
		return uidName(v.Bytes())
	case fd.Kind() == protoreflect.EnumKind && fd.Enum().FullName() == "jobpolicy.v1.Rule":
		return jobpolicyv1.Rule(v.Enum()).Name()
	case fd.Kind() == protoreflect.EnumKind:
		zero := string(fd.Enum().Values().Get(0).Name())
		name := string(fd.Enum().Values().ByNumber(v.Enum()).Name())
		return strings.TrimPrefix(name, strings.TrimSuffix(zero, "UNSPECIFIED"))
	case fd.Kind() == protoreflect.MessageKind:
		return inlineMessage(v.Message())
	}
	return fmt.Sprint(v.Interface())
}

func inlineMap(m protoreflect.Map) string {
	var parts []string
	m.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		parts = append(parts, key.String()+"="+v.String())
		return true
	})
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func inlineList(list protoreflect.List) string {
	var parts []string
	for i := range list.Len() {
		parts = append(parts, list.Get(i).String())
	}
	return strings.Join(parts, ",")
}

func inlineMessage(m protoreflect.Message) string {
	switch m := m.Interface().(type) {
	case *timestamppb.Timestamp:
		return clock(m)
	case *jobpolicyv1.JobEvent:
		return fmt.Sprintf("%s %s: %s", strings.TrimPrefix(m.GetType().String(), "EVENT_TYPE_"), m.GetReason(), m.GetMessage())
	case *jobpolicyv1.RuleAnswer:
		return fmt.Sprintf("%s: %s", m.GetRule().Name(), m.GetDetail())
	case *jobpolicyv1.SkippedRun:
		return fmt.Sprintf("%s: %s: %s", clock(m.GetScheduledTime()), strings.TrimPrefix(m.GetReason().String(), "SKIP_REASON_"), m.GetDetail())
	case *jobpolicyv1.KeptJob:
		return fmt.Sprintf("%s: %s: %s", m.GetName(), strings.TrimPrefix(m.GetReason().String(), "KEEP_REASON_"), m.GetDetail())
	}
	var parts []string
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case !m.Has(fd):
		case fd.IsList():
			parts = append(parts, fmt.Sprintf("%s=%s", fd.Name(), inlineList(m.Get(fd).List())))
		default:
			parts = append(parts, fmt.Sprintf("%s=%s", fd.Name(), inline(fd, m.Get(fd))))
		}
	}
	return strings.Join(parts, " ")
}

// uidName undoes uid and numberedUID.
func uidName(b []byte) string {
	if len(b) == 16 && b[0] == 0 {
		return fmt.Sprintf("#%d", b[15])
	}
	return strings.TrimRight(string(b), "\x00")
}

func clock(at *timestamppb.Timestamp) string {
	if at == nil {
		return "-"
	}
	return at.AsTime().Format(time.RFC3339)
}
