package cronjob

import (
	"context"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/informer"
	"jobpolicy.dev/executor/shadow"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Decider decides what becomes of a CronJob. DecideCronJob must be safe for concurrent use, and
// must return when ctx ends. Errors carry a gRPC status code (see status.Code); the contract says
// what a caller must do for each code.
type Decider interface {
	DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
}

// Config is what a Controller is made of. Required are Decider, Jobs and what
// controller.Config requires. ManagedBy is the value of wire.CronJobManagedBy that hands a
// CronJob over to this controller.
type Config struct {
	controller.Config
	Decider Decider
	// Jobs is an informer of the Jobs, in all namespaces or in Namespaces. The caller runs
	// it, after New: New adds an index.
	Jobs *informer.Set
	// TimeZone is the IANA name of the time zone of schedules that name none. Default UTC.
	TimeZone string
	// Shadow collects the differences from what the built-in controller does. If it is set,
	// the Controller only compares: it writes nothing, and ManagedBy and ReplaceBuiltin have
	// no effect.
	Shadow *shadow.Report
}
