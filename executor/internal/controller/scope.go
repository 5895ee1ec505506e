package controller

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
)

// Scope says which objects the controllers of this executor manage.
type Scope struct {
	// ManagedBy is the name by which users give objects to this executor: the value of
	// spec.managedBy of a Job, and of the annotation wire.CronJobManagedBy of a CronJob.
	ManagedBy string
	// ReplaceBuiltin: the built-in controllers are switched off, and their objects are
	// managed, too.
	ReplaceBuiltin bool
}

// Manages reports whether the executor manages the Job.
func (s Scope) Manages(job *batchv1.Job) bool {
	manager := job.Spec.ManagedBy
	if manager == nil {
		return s.ReplaceBuiltin
	}
	return *manager == s.ManagedBy || (s.ReplaceBuiltin && *manager == batchv1.JobControllerName)
}

// Unmanaged reports whether the Job names a manager other than this executor and the
// built-in controller.
func (s Scope) Unmanaged(job *batchv1.Job) bool {
	manager := job.Spec.ManagedBy
	return manager != nil && *manager != batchv1.JobControllerName && !s.Manages(job)
}

// Reconciles reports whether the Job is reconciled: it exists, is managed and has not
// finished.
func (s Scope) Reconciles(job *batchv1.Job) bool {
	return job != nil && s.Manages(job) && wire.FinishedCondition(job) == nil
}

// Expires reports whether the executor deletes the Job when its time to live is over. The Job
// must have finished. Beside the built-in controller, the executor deletes only the Jobs that it
// manages. In place of the built-in controller, it deletes every Job, whoever manages it: the
// built-in controller ignores spec.managedBy, too (invariant I9).
func (s Scope) Expires(job *batchv1.Job) bool {
	if wire.FinishedCondition(job) == nil || job.DeletionTimestamp != nil {
		return false
	}
	return s.ReplaceBuiltin || s.Manages(job)
}

// Runs reports whether the executor runs the CronJob. Beside the built-in controller, it runs a
// CronJob only if the CronJob names this executor and spec.suspend is true. The built-in
// controller then starts no runs, but it still prunes the history and writes parts of the status.
// In place of the built-in controller, the executor runs every CronJob that does not name
// another manager.
func (s Scope) Runs(cron *batchv1.CronJob) bool {
	if manager, named := cron.Annotations[wire.CronJobManagedBy]; named && manager != s.ManagedBy {
		return false
	}
	return s.ReplaceBuiltin || (s.HandedOver(cron) && cron.Spec.Suspend != nil && *cron.Spec.Suspend)
}

// HandedOver reports whether the CronJob names this executor. If it does, spec.suspend does not
// say that the user has suspended it. It only keeps the built-in controller from starting runs.
func (s Scope) HandedOver(cron *batchv1.CronJob) bool {
	return cron.Annotations[wire.CronJobManagedBy] == s.ManagedBy
}

// Suspended reports whether the CronJob's user has suspended it.
func (s Scope) Suspended(cron *batchv1.CronJob) bool {
	return wire.CronJobSuspended(cron, s.HandedOver(cron))
}
