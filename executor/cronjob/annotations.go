package cronjob

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
)

// Annotations of a CronJob that this package reads. The other annotations of jobpolicy.dev/
// are for the engine.
const (
	AnnotationManagedBy = wire.CronJobManagedBy
	AnnotationSuspend   = wire.CronJobSuspend
)

// scope says which CronJobs are managed here, and which are suspended.
type scope struct {
	managedBy      string // Config.ManagedBy
	replaceBuiltin bool   // Config.ReplaceBuiltin
}

// handedOver reports whether the CronJob names this controller. If so, spec.suspend
// only tells the built-in controller to leave it alone.
func (s scope) handedOver(cron *batchv1.CronJob) bool {
	return cron.Annotations[AnnotationManagedBy] == s.managedBy
}

// managed reports whether this controller runs the CronJob.
func (s scope) managed(cron *batchv1.CronJob) bool {
	manager, named := cron.Annotations[AnnotationManagedBy]
	if named && manager != s.managedBy {
		return false
	}
	return s.replaceBuiltin || (named && specSuspended(cron))
}

func specSuspended(cron *batchv1.CronJob) bool { return cron.Spec.Suspend != nil && *cron.Spec.Suspend }

// suspended reports whether the CronJob's user has suspended it.
func (s scope) suspended(cron *batchv1.CronJob) bool {
	return wire.CronJobSuspended(cron, s.handedOver(cron))
}
