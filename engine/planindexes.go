package engine

import (
	"time"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// newIndexes are pods for the lowest indexes that are neither done nor taken, if there
// is room for so many. With limits per index, indexes whose retry delay has not passed
// get no pod, but take up room, as upstream does (firstPendingIndexes and
// getPodCreationInfoForIndependentIndexes, v1.37). They do not take up the limit of one
// decision. Upstream counts them there too, so that indexes above the lowest 500 that
// are missing wait for the retry of these.
func newIndexes(s *snapshot, t tally, room int32) creations {
	busy, waits := busyIndexes(s, t)
	completions := s.spec.GetCompletions()
	missing := t.missing(busy, room, completions)
	delayed, retry := delayedIndexes(s, t, missing)
	if retry != nil {
		waits = append(waits, retry)
	}
	startable := missing.Len() - delayed.Len()
	n := min(startable, int64(s.maxCreations()))
	c := creations{waits: waits, left: startable - n}
	if n > 0 {
		c.create = createIndexes(t, t.missing(busy.Union(delayed), int32(n), completions))
	}
	return c
}

// busyIndexes are the indexes that have a pod, or may get none yet for a reason of the
// wait. Indexes with an unlisted failure take up no room: listed failures may have to
// be replaced, and thereby released, before others can be listed.
func busyIndexes(s *snapshot, t tally) (indexset.Set, []*jobpolicyv1.Wait) {
	busy := s.active.Union(s.inFlight)
	if s.replaceFailedOnly() {
		busy = busy.Union(s.terminating)
	}
	unlisted := s.unlistedFailed.Minus(t.taken(busy))
	if !s.perIndex() || unlisted.Empty() {
		return busy, nil
	}
	return busy.Union(unlisted), []*jobpolicyv1.Wait{wait(jobpolicyv1.WaitReason_WAIT_REASON_UNLISTED_PODS,
		"indexes whose failed pods the request does not list yet: %d", unlisted.Len())}
}

// delayedIndexes are those of the missing indexes whose retry delay has not passed, and
// the wait for the first of these delays to pass; nil if there are none. The delay grows
// with every failure of the index, including those that the pod failure policy ignores
// (upstream getRemainingTimePerIndex, v1.37).
func delayedIndexes(s *snapshot, t tally, missing indexset.Set) (indexset.Set, *jobpolicyv1.Wait) {
	var delayed []int32
	var first podRow
	var earliest time.Time
	for _, r := range t.rows {
		if !awaitsReplacement(t, r) || !missing.Has(r.pod.GetIndex()) {
			continue
		}
		at, waiting := s.backoff.nextPod(s.now, r.retry())
		if !waiting {
			continue
		}
		if len(delayed) == 0 || at.Before(earliest) {
			first, earliest = r, at
		}
		delayed = append(delayed, r.pod.GetIndex())
	}
	if len(delayed) == 0 {
		return indexset.Set{}, nil
	}
	return indexset.Of(delayed...), retryWait(s, first, earliest)
}

// retryWait says why the index of a failed pod is not retried before a time.
func retryWait(s *snapshot, r podRow, at time.Time) *jobpolicyv1.Wait {
	failures := r.retry()
	return waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_POD_FAILURE_BACKOFF, at,
		"failures of index %d in a row: %d; next try %s after the last one", r.pod.GetIndex(), failures.consecutive, s.backoff.delay(failures))
}

// createIndexes says to create a pod for each of the indexes.
func createIndexes(t tally, indexes indexset.Set) *jobpolicyv1.CreatePods {
	create := &jobpolicyv1.CreatePods{Count: int32(indexes.Len()), Indexes: indexes.Message(), AfterFailures: t.failed > 0}
	if len(t.awaiting) == 0 {
		return create
	}
	for ix := range indexes.All {
		if last, retried := t.awaiting[ix]; retried {
			create.FailureCounts = append(create.FailureCounts, inheritedCounts(last))
		}
	}
	return create
}
