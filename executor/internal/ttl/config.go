package ttl

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/policy"
	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/executor/writes"
)

// Config is what a Controller is made of. Required are Jobs and what
// controller.Config requires. ManagedBy is the value of spec.managedBy of the Jobs that are
// managed here.
type Config struct {
	controller.Config
	// Jobs is an informer of the Jobs, in all namespaces or in Namespaces. The caller runs
	// it, after New.
	Jobs *controller.Informers
	// Policies know the options of Jobs. The caller runs them, after New. nil: no JobPolicies are read.
	Policies *policy.Policies
	// ServerNow returns the API server's time as of its last answer, or the zero time
	// before the first answer. nil: only Now counts.
	ServerNow func() time.Time
	// Refusals returns where the refused deletion of a Job is remembered; nil: nowhere. A nil function,
	// as a nil answer: nobody is told that a deletion is refused.
	Refusals func(*batchv1.Job) *writes.Refusals
	// Shadow collects the differences from what the built-in controller does. If it is set,
	// the Controller only compares: it deletes nothing, and ManagedBy and ReplaceBuiltin have
	// no effect.
	Shadow *shadow.Report
}
