package cronjob

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
)

// Annotations of a CronJob that this package reads. The request has the others as they
// are written, for the engine.
const (
	// AnnotationManagedBy names the controller that runs the CronJob, as
	// spec.managedBy does for a Job.
	AnnotationManagedBy = "jobpolicy.dev/managed-by"
	// AnnotationSuspend is "true" while no runs may start. It is for CronJobs whose
	// spec.suspend is true to keep the built-in controller away.
	AnnotationSuspend = "jobpolicy.dev/suspend"
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

// suspended reports whether the CronJob's user has suspended it. A text that is not a
// boolean suspends it, too: a started run cannot be undone.
func (s scope) suspended(cron *batchv1.CronJob) bool {
	if !s.handedOver(cron) {
		return specSuspended(cron)
	}
	text, ok := cron.Annotations[AnnotationSuspend]
	if !ok {
		return false
	}
	yes, err := strconv.ParseBool(text)
	return yes || err != nil
}
