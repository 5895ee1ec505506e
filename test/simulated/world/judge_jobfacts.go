package world

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/kit/ledger"
)

// What a Job says about itself.

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// policyUnreadable reports whether the Job has options that cannot be read. An executor keeps such a Job once it has
// finished.
func policyUnreadable(job *batchv1.Job) bool {
	_, problems := wire.PolicySpec(job.Annotations)
	return len(problems) > 0
}

// held reports whether the Job does not start because its policy cannot be read, and never could be.
func held(job *batchv1.Job) bool {
	return policyUnreadable(job) && job.Status.StartTime == nil && wire.LastValid(job.Annotations) == nil
}

// mayBeHeld reports whether executors may start no pods of the Job because its policy cannot be read: it has not started,
// or its last valid options are not known. Restarts are no reason.
func mayBeHeld(job *batchv1.Job) bool {
	return policyUnreadable(job) && (job.Status.StartTime == nil || wire.LastValid(job.Annotations) == nil)
}

func perIndex(job *batchv1.Job) bool { return job.Spec.BackoffLimitPerIndex != nil }

func replacesFailedOnly(job *batchv1.Job) bool {
	policy := job.Spec.PodReplacementPolicy
	return (policy != nil && *policy == batchv1.Failed) || job.Spec.PodFailurePolicy != nil
}

// inRange reports whether the Job wants a pod's index.
func inRange(job *batchv1.Job, pod *corev1.Pod) bool {
	ix := podIndex(pod)
	return !ledger.IsIndexed(job) || (ix != noIndex && ix < valueOr(job.Spec.Completions, 0))
}

func valueOr[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}

func condition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if job.Status.Conditions[i].Type == kind {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// decided is the interim condition that is true; finished the terminal one.
func decided(job *batchv1.Job) batchv1.JobConditionType {
	return firstTrue(job, batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget)
}

func finished(job *batchv1.Job) batchv1.JobConditionType {
	return firstTrue(job, batchv1.JobComplete, batchv1.JobFailed)
}

func firstTrue(job *batchv1.Job, kinds ...batchv1.JobConditionType) batchv1.JobConditionType {
	for _, kind := range kinds {
		if ledger.IsTrue(job, kind) {
			return kind
		}
	}
	return ""
}

func completedIndexes(s *batchv1.JobStatus) indexset.Set { return ledger.Indexes(s.CompletedIndexes) }

func failedIndexes(s *batchv1.JobStatus) indexset.Set {
	return ledger.Indexes(valueOr(s.FailedIndexes, ""))
}
