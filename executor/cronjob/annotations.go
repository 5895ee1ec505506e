package cronjob

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
)

// Annotations of a CronJob that are read here. The engine reads the others: they are
// part of the request as they are written.
const (
	// AnnotationManagedBy names the controller that runs the CronJob, as
	// spec.managedBy does for a Job.
	AnnotationManagedBy = "jobpolicy.dev/managed-by"
	// AnnotationSuspend is "true" while no runs are to start, on a CronJob whose
	// spec.suspend keeps the built-in controller away.
	AnnotationSuspend = "jobpolicy.dev/suspend"
)

// handedOver reports whether the CronJob names this controller, so that
// spec.suspend is meant for the built-in one.
func (c *Controller) handedOver(cron *batchv1.CronJob) bool {
	return cron.Annotations[AnnotationManagedBy] == c.cfg.ManagedBy
}

// managed reports whether this controller runs the CronJob.
func (c *Controller) managed(cron *batchv1.CronJob) bool {
	manager, named := cron.Annotations[AnnotationManagedBy]
	if named && manager != c.cfg.ManagedBy {
		return false
	}
	return c.cfg.ReplaceBuiltin || (named && specSuspended(cron))
}

func specSuspended(cron *batchv1.CronJob) bool { return cron.Spec.Suspend != nil && *cron.Spec.Suspend }

// suspended is what the CronJob's user means. Text that is no truth value holds
// runs back: a start cannot be taken back.
func (c *Controller) suspended(cron *batchv1.CronJob) bool {
	if !c.handedOver(cron) {
		return specSuspended(cron)
	}
	text, ok := cron.Annotations[AnnotationSuspend]
	if !ok {
		return false
	}
	yes, err := strconv.ParseBool(text)
	return yes || err != nil
}
