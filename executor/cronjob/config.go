package cronjob

import (
	"context"
	"fmt"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/informer"
	"jobpolicy.dev/executor/shadow"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Decider decides what becomes of a CronJob. Errors carry a gRPC status code, read
// with status.Code; the contract says what each code asks of a caller.
type Decider interface {
	DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
}

// Config is what a Controller is made of. Decider and Jobs are required, and what
// controller.Config requires. ManagedBy is the value of AnnotationManagedBy.
type Config struct {
	controller.Config
	Decider Decider
	// Jobs is an informer of the Jobs, in all namespaces or in Namespaces. The caller runs
	// it, after New: New adds an index.
	Jobs *informer.Set
	// TimeZone is the time zone of schedules that name none, an IANA name. Default
	// UTC.
	TimeZone string
	// Shadow takes the differences from the built-in controller. With it, the Controller only
	// compares: it writes nothing, and ManagedBy and ReplaceBuiltin do not count.
	Shadow *shadow.Report
}

func (c *Config) validate() error {
	switch {
	case c.Decider == nil:
		return fmt.Errorf("no Decider: %w", controller.ErrConfig)
	case c.Jobs == nil:
		return fmt.Errorf("no Jobs: %w", controller.ErrConfig)
	}
	return nil
}
