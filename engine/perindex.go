package engine

import (
	"bytes"
	"fmt"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// exhaustsIndex reports whether a failed pod is the last one its index may have.
func exhaustsIndex(s *snapshot, r podRow) bool {
	if r.match.failsIndex() {
		return true
	}
	return r.match.counts() && r.pod.GetIndexFailureCount() >= s.spec.GetBackoffLimitPerIndex()
}

// awaitingReplacement finds, for each index that is neither done nor active,
// the failed pod that its next pod replaces. That pod keeps its finalizer until
// the replacement exists, because it carries the index's failure count
// (upstream getPodsWithDelayedDeletionPerIndex, v1.37). A pod that the status has recorded
// is released whatever happens, so another pod of the index goes first.
func awaitingReplacement(s *snapshot, t *tally) map[int32]podRow {
	awaiting := map[int32]podRow{}
	for _, r := range t.rows {
		ix := r.pod.GetIndex()
		if !r.failed || !r.inRange || t.succeededIndexes.Has(ix) || t.failedIndexes.Has(ix) || s.active.Has(ix) {
			continue
		}
		last, ok := awaiting[ix]
		if !ok || last.recorded && !r.recorded || last.recorded == r.recorded && laterFailure(r.pod, last.pod) {
			awaiting[ix] = r
		}
	}
	return awaiting
}

// laterFailure reports whether a failed after b on the same index. It compares their
// failure counts, then their times, then their UIDs, so that the result does not
// depend on the order of rows.
func laterFailure(a, b *jobpolicyv1.UnaccountedPod) bool {
	if pastFailures(a) != pastFailures(b) {
		return pastFailures(a) > pastFailures(b)
	}
	at, bt := a.GetFinishedTime().AsTime(), b.GetFinishedTime().AsTime()
	if !at.Equal(bt) {
		return at.After(bt)
	}
	return bytes.Compare(a.GetUid(), b.GetUid()) > 0
}

// pastFailures is how many pods of the index failed before this one, counted
// and ignored.
func pastFailures(pod *jobpolicyv1.UnaccountedPod) int64 {
	return int64(pod.GetIndexFailureCount()) + int64(pod.GetIndexIgnoredFailureCount())
}

// retry returns the failures that delay the failed pod's replacement.
func (r podRow) retry() retryState {
	var state retryState
	if !r.skipsDelay() {
		state.add(r.pod.GetFinishedTime().AsTime())
	}
	return state.after(pastFailures(r.pod)).of(r.pod.Index)
}

// inheritedCounts are the failure counts that the replacement of a failed pod gets.
func inheritedCounts(r podRow) *jobpolicyv1.IndexFailureCount {
	failures, ignored := int64(r.pod.GetIndexFailureCount()), int64(r.pod.GetIndexIgnoredFailureCount())
	if r.match.counts() {
		failures++
	} else {
		ignored++
	}
	return &jobpolicyv1.IndexFailureCount{
		Index:           r.pod.GetIndex(),
		Failures:        clamp32(failures),
		IgnoredFailures: clamp32(ignored),
	}
}

// tooManyFailedIndexes: more indexes failed than spec.maxFailedIndexes allows.
func tooManyFailedIndexes(f facts) answer {
	if f.spec.MaxFailedIndexes == nil {
		return no("the Job does not limit failed indexes")
	}
	failed, limit := f.tally.failedIndexes.Len(), int64(f.spec.GetMaxFailedIndexes())
	detail := fmt.Sprintf("failed indexes %d, allowed %d", failed, limit)
	if failed > limit {
		return failure(reasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes", detail)
	}
	return no(detail)
}

// allIndexesFinishedSomeFailed: nothing is left to run, and not all succeeded.
func allIndexesFinishedSomeFailed(f facts) answer {
	if !f.perIndex() {
		return no("failures are not limited by index")
	}
	failed, done := f.tally.failedIndexes.Len(), f.tally.failedIndexes.Len()+f.tally.succeededIndexes.Len()
	detail := fmt.Sprintf("indexes done: %d of %d, failed ones %d", done, f.spec.GetCompletions(), failed)
	if failed > 0 && done >= int64(f.spec.GetCompletions()) {
		return failure(reasonFailedIndexes, "Job has failed indexes", detail)
	}
	return no(detail)
}
