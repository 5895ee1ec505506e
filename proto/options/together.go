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
	switch d := m.Interface().(type) {
	case *jobpolicyv1.RetryDelay:
		if len(d.GetDelaysSeconds()) > 0 && (d.InitialSeconds != nil || d.MaxSeconds != nil || d.Factor != nil) {
			problem("delays_seconds", "cannot be set together with any of %s", names("initial_seconds", "max_seconds", "factor"))
		}
		if d.InitialSeconds != nil && d.MaxSeconds != nil && d.GetMaxSeconds() < d.GetInitialSeconds() {
			problem("max_seconds", "expected at least %s (%d), found %d", names("initial_seconds"), d.GetInitialSeconds(), d.GetMaxSeconds())
		}
	case *jobpolicyv1.NextTryResources:
		if d.Factor != nil && d.GetFactor() == 1 {
			problem("factor", "expected more than 1, found 1")
		}
		if d.GetMax() != "" && !PositiveQuantity(d.GetMax()) {
			problem("max", "expected a Kubernetes quantity above 0, for example 8Gi, found %q", d.GetMax())
		}
		if d.GetResource() == jobpolicyv1.RaisedResource_RAISED_RESOURCE_CPU && len(d.GetOnExitCodes()) == 0 {
			problem("on_exit_codes", "expected at least one exit code, because running out of memory does not raise Cpu")
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
		if o.EndConditionFailures != nil && !o.GetEndCondition() {
			problem("end_condition_failures", "needs %s to be true", names("end_condition"))
		}
		if o.GetTerminationDeadlineNode() != 0 && o.TerminationDeadlineSeconds == nil {
			problem("termination_deadline_node", "needs %s", names("termination_deadline_seconds"))
		}
	}
	return problems
}

// DelaysRetries reports whether a retry delay says how long to wait after pods have failed. One that only has
// quota_max_seconds does not.
func DelaysRetries(d *jobpolicyv1.RetryDelay) bool {
	return len(d.GetDelaysSeconds()) > 0 || d != nil && (d.InitialSeconds != nil || d.MaxSeconds != nil || d.Factor != nil || d.JitterPercent != nil)
}
