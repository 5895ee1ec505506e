package cronjob

import (
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/policy"
	"jobpolicy.dev/executor/shadow"
)

// Config is what a Controller is made of. Required are Jobs and what
// controller.Config requires. ManagedBy is the value of wire.CronJobManagedBy that hands a
// CronJob over to this controller.
type Config struct {
	controller.Config
	// Jobs is an informer of the Jobs, in all namespaces or in Namespaces. The caller runs
	// it, after New: New adds an index.
	Jobs *controller.Informers
	// Policies know the options of CronJobs. The caller runs them, after New. nil: no JobPolicies are read.
	Policies *policy.Policies
	// TimeZone is the IANA name of the time zone of schedules that name none. Default UTC.
	TimeZone string
	// Shadow collects the differences from what the built-in controller does. If it is set,
	// the Controller only compares: it writes nothing, and ManagedBy and ReplaceBuiltin have
	// no effect.
	Shadow *shadow.Report
}
