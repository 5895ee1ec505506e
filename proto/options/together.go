package options

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// together finds fields of a message that make no sense together. name is how a field is
// called.
func together(path string, m protoreflect.Message, name func(protoreflect.FieldDescriptor) string) []Problem {
	names := func(fields ...string) string {
		for i, field := range fields {
			fields[i] = name(m.Descriptor().Fields().ByName(protoreflect.Name(field)))
		}
		return strings.Join(fields, ", ")
	}
	var problems []Problem
	problem := func(field, format string, args ...any) {
		problems = append(problems, Problem{join(path, names(field)), fmt.Sprintf(format, args...)})
	}
	if d, ok := m.Interface().(*jobpolicyv1.RetryDelay); ok {
		if len(d.GetDelaysSeconds()) > 0 && (d.InitialSeconds != nil || d.MaxSeconds != nil || d.Factor != nil) {
			problem("delays_seconds", "cannot be set together with any of %s", names("initial_seconds", "max_seconds", "factor"))
		}
		if d.InitialSeconds != nil && d.MaxSeconds != nil && d.GetMaxSeconds() < d.GetInitialSeconds() {
			problem("max_seconds", "expected at least %s (%d), found %d", names("initial_seconds"), d.GetInitialSeconds(), d.GetMaxSeconds())
		}
	}
	if o, ok := m.Interface().(*jobpolicyv1.JobOptions); ok {
		seen := map[jobpolicyv1.PodStartProblem]bool{}
		for _, n := range o.GetNeverStarted() {
			if seen[n.GetProblem()] {
				problem("never_started", "has two items of the same problem")
				break
			}
			seen[n.GetProblem()] = true
		}
	}
	return problems
}
