package statusrules

import (
	"fmt"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The minor versions of Kubernetes, v1.x, whose rules are known.
const (
	OldestMinor = 29
	NewestMinor = 37
)

// MaxViolations is how many violations are listed at most.
const MaxViolations = 100

// The history of the feature gate JobManagedBy, in minor versions.
const (
	managedByAdded  = 30
	managedByOn     = 32
	managedByLocked = 35
)

// An APIServer holds the properties of an API server that decide which rules it has.
type APIServer struct {
	// Minor is x of its version v1.x: OldestMinor to NewestMinor.
	Minor int32
	// JobManagedBy says whether the feature gate of that name is on.
	JobManagedBy bool
}

// Default returns an API server of a minor version with its default feature
// gates.
func Default(minor int32) APIServer {
	return APIServer{Minor: minor, JobManagedBy: minor >= managedByOn}
}

// GateSettable reports whether the feature gate JobManagedBy can be on, or off, in a
// minor version. It cannot be on if the version does not have it, nor off if it is
// locked.
func GateSettable(minor int32, on bool) bool {
	if on {
		return minor >= managedByAdded
	}
	return minor < managedByLocked
}

// A Transition is an update of a Job's status.
type Transition struct {
	// Spec is the spec that the API server holds. The rules read its completion
	// mode, parallelism, completions, back-off limit per index and suspend, and
	// whether it has a success policy.
	Spec *jobpolicyv1.JobSpec
	// Before is the status that the API server holds; nil for one that was never
	// written.
	Before *jobpolicyv1.JobStatus
	// After is the status to be written. It may hold values that the contract does not
	// allow elsewhere: negative counts, ranges in any order, UIDs of any length, several
	// conditions of one type.
	After *jobpolicyv1.JobStatus
}

// A Violation is one rule that a transition breaks.
type Violation struct {
	// Rule is the rule's name, as in [Rules].
	Rule string
	// Field is the field that the API server blames, as it spells it:
	// status.uncountedTerminatedPods.failed[3].
	Field string
	// Description says in words what is wrong.
	Description string
}

// String gives the field first, as the API server does.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (%s)", v.Field, v.Description, v.Rule)
}

// Check lists the rules that a transition breaks, in the order of the table. It lists
// a rule once for each field or condition that breaks it. An empty list means that
// the API server accepts the status. At most MaxViolations are listed. The transition
// is not changed.
func (s APIServer) Check(t Transition) []Violation {
	var r report
	for _, rule := range s.Rules() {
		r.rule = rule.Name
		rule.ask(t, &r)
	}
	return r.violations
}

// A report collects the violations, one rule after the other.
type report struct {
	rule       string
	violations []Violation
}

// add records a violation of the rule that is being asked. Texts are made only for
// violations that are listed, because a status may hold 200,000 UIDs.
func (r *report) add(field, format string, args ...any) {
	if len(r.violations) < MaxViolations {
		r.violations = append(r.violations, Violation{Rule: r.rule, Field: "status." + field, Description: fmt.Sprintf(format, args...)})
	}
}
