package state

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
)

// Scope says which Jobs the executor manages.
type Scope struct {
	// ManagedBy is the value of spec.managedBy that makes a Job managed.
	ManagedBy string
	// ReplaceBuiltin: the executor also manages Jobs that name no manager or the
	// built-in controller.
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
