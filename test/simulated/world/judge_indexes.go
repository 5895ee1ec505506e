package world

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// judgeIndexes compares the index sets of an executor's status with the pods.
func (j *judge) judgeIndexes(w apiserver.Write, r *jobRecord, next *batchv1.Job) {
	completed, failed := completedIndexes(&next.Status), failedIndexes(&next.Status)
	kept := valueOr(next.Spec.Completions, 0)
	for _, job := range j.recent(r) {
		kept = min(kept, valueOr(job.Spec.Completions, 0))
	}
	if lost := r.failed.Below(kept).Minus(failed); !lost.Empty() { // Of completed ones the ledger says so.
		j.breach("I2", r.key, r.uid, "%s took index %d out of the failed ones, and what was recorded stays", w.By, lost.Ranges()[0].First)
	}
	if fresh := completed.Minus(r.completed); !fresh.Empty() {
		j.judgeCompleted(w, r, fresh)
	}
	if fresh := failed.Minus(r.failed); !fresh.Empty() {
		j.judgeFailedIndexes(w, r, fresh)
	}
}

// judgeCompleted: an index is completed by a pod that succeeded with its finalizer, or
// that is gone.
func (j *judge) judgeCompleted(w apiserver.Write, r *jobRecord, fresh indexset.Set) {
	proven := map[int32]bool{}
	for _, p := range r.ends {
		if (p.succeeded() || p.flipped) && !j.stoppedWithJob(r, p) {
			proven[podIndex(p.pod)] = true
		}
	}
	for ix := range fresh.All {
		if !proven[ix] {
			j.breach("verdict", r.key, r.uid, "%s wrote index %d as completed, and no pod of it succeeded with the finalizer on", w.By, ix)
		}
	}
}

// judgeFailedIndexes: an index has failed for good when a pod of it may not be
// replaced: by a rule of the pod failure policy, because it has not started in time, or because too many failed.
func (j *judge) judgeFailedIndexes(w apiserver.Write, r *jobRecord, fresh indexset.Set) {
	failures, final := map[int32]int32{}, map[int32]bool{}
	for _, p := range r.ends {
		ix := podIndex(p.pod)
		if j.stoppedWithJob(r, p) || j.endedWithJob(r, p) {
			continue
		}
		// A pod that still ran in any view when the Job failed counts as failed.
		if p.flipped || j.ranOn(w, r, r.job, p) || policyAction(r.job, p.version()) == batchv1.PodFailurePolicyActionFailIndex {
			final[ix] = true
		}
		if r.mayFail(p) {
			failures[ix]++
		}
		if p.former != nil && p.former != r {
			// The pod says how often the index of its former Job had failed, and that counts.
			failures[ix] = max(failures[ix], 1+countOf(p.pod, batchv1.JobIndexFailureCountAnnotation))
		}
	}
	for _, p := range j.inSight(r) {
		final[podIndex(p.pod)] = final[podIndex(p.pod)] || j.startedLate(r, p, w.By, "FailIndex")
	}
	for ix := range fresh.All {
		limit := valueOr(r.job.Spec.BackoffLimitPerIndex, 0)
		if perIndex(r.job) && (final[ix] || failures[ix] > limit) {
			continue
		}
		j.breach("verdict", r.key, r.uid, "%s wrote index %d as failed after %d failures that count, and it may fail %d times", w.By, ix, failures[ix], limit)
	}
}
