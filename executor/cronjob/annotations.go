package cronjob

import "jobpolicy.dev/executor/wire"

// Annotations of a CronJob that this package reads; see package scope. The other annotations
// of jobpolicy.dev/ are for the engine.
const (
	AnnotationManagedBy = wire.CronJobManagedBy
	AnnotationSuspend   = wire.CronJobSuspend
)
