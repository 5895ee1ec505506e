package engine

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A podRow is an unaccounted pod with what the tally found about it.
type podRow struct {
	pod *jobpolicyv1.UnaccountedPod
	// inRange is false for a pod of an INDEXED Job whose index is not one of the Job's.
	// Such a pod is released but never counted.
	inRange bool
	// recorded is true when the UID is in status.uncounted: an earlier decision reached
	// the verdict on this pod, and it stays (invariant I3).
	recorded bool
	// succeeded and failed are the verdict on the pod, recorded or new. At most
	// one is true; both are false for a pod that is being deleted and may yet
	// end either way, and for one that is deleted with its Job (leavesWithJob).
	succeeded, failed bool
	// ended is true for a new pod that failed because it was told to end when the Job failed.
	// It counts as failed, as a pod that is deleted then, and that says nothing else: no policy
	// judges it, and its index has not failed.
	ended bool
	// match is what the pod failure policy says about a pod that did not succeed. For a
	// pod that has not ended it matters only when the Job has failed.
	match policyMatch
}

// isNew reports whether the pod's end is not recorded yet.
func (r podRow) isNew() bool { return !r.recorded && r.inRange }

// A tally holds the totals over all pods: those accounted for, those recorded, and
// those that are new.
type tally struct {
	// rows are in order of index, then UID.
	rows []podRow
	// succeeded and failed count pods; for INDEXED, succeeded counts indexes.
	succeeded, failed int64
	indexProgress
	// awaiting holds, for each index whose last pod failed and has no
	// replacement yet, that pod's row. Only with limits per index.
	awaiting map[int32]podRow
	retry    retryState
}

func takeTally(s *snapshot) tally {
	t := tally{rows: readRows(s)}
	var newSucceeded, newFailed int64
	for _, r := range t.rows {
		if !r.isNew() {
			continue
		}
		if r.succeeded {
			newSucceeded++
		}
		if r.failed && r.match.counts() {
			newFailed++
		}
	}
	unlisted, uncounted := s.unlisted(), s.status.GetUncounted()
	t.failed = int64(s.status.GetFailed()) + int64(len(uncounted.GetFailed())) + newFailed
	if s.unlistedFailuresCount() {
		t.failed += int64(unlisted.GetFailed())
	}
	t.succeeded = int64(s.status.GetSucceeded()) + int64(len(uncounted.GetSucceeded())) + newSucceeded +
		int64(unlisted.GetSucceeded())
	if s.indexed {
		t.tallyIndexes(s)
	}
	t.retry = readRetry(s, t.rows)
	return t
}

// tallyIndexes works out which indexes succeeded and which failed for good.
func (t *tally) tallyIndexes(s *snapshot) {
	var succeeded, failed []int32
	for _, r := range t.rows {
		if !r.inRange {
			continue
		}
		if r.succeeded {
			succeeded = append(succeeded, r.pod.GetIndex())
		}
		// A pod that the status has recorded does not make its index fail now. If it did so
		// before, the status already lists the index as failed. If it did not, that stays
		// so: for example, the pod may have been deleted because of a verdict.
		if s.perIndex() && r.failed && !r.recorded && !r.ended && exhaustsIndex(s, r) {
			failed = append(failed, r.pod.GetIndex())
		}
	}
	failed = append(failed, s.endingIndexes()...)
	recorded := indexProgress{s.completed, s.failedIndexes}
	t.indexProgress = recorded.and(indexset.Of(succeeded...).Union(s.unlistedSucceeded), indexset.Of(failed...))
	t.succeeded = t.succeededIndexes.Len()
	if s.perIndex() {
		t.awaiting = awaitingReplacement(s, t)
	}
}

func readRows(s *snapshot) []podRow {
	rows := make([]podRow, 0, len(s.req.GetUnaccountedPods()))
	for _, pod := range s.req.GetUnaccountedPods() {
		rows = append(rows, readRow(s, pod))
	}
	slices.SortFunc(rows, byIndex)
	return rows
}

// byIndex orders rows by index, then UID.
func byIndex(a, b podRow) int {
	if c := cmp.Compare(a.pod.GetIndex(), b.pod.GetIndex()); c != 0 {
		return c
	}
	return bytes.Compare(a.pod.GetUid(), b.pod.GetUid())
}

func readRow(s *snapshot, pod *jobpolicyv1.UnaccountedPod) podRow {
	r := podRow{pod: pod, inRange: s.inRange(pod.Index)}
	switch {
	case s.recordedSucceeded[string(pod.GetUid())]:
		r.recorded, r.succeeded = true, true
	case s.recordedFailed[string(pod.GetUid())]:
		r.recorded, r.failed = true, true
	case s.leavesWithJob(pod):
		return r
	default:
		r.succeeded = pod.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
		r.failed = !r.succeeded && (pod.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_FAILED || !s.replaceFailedOnly() || s.lost[string(pod.GetUid())])
	}
	r.ended = r.failed && !r.recorded && s.endedWithJob(pod)
	if !r.succeeded && !r.ended {
		r.match = s.failurePolicy.match(pod.GetFailure())
	}
	return r
}

// clamp32 brings a count into the range of the API's int32 fields.
func clamp32(n int64) int32 {
	return int32(max(0, min(n, math.MaxInt32)))
}
