package engine

import "jobpolicy.dev/engine/indexset"

// An indexProgress says which indexes are done. No index is both succeeded and failed,
// because the API server would refuse such a status (invariant I5): the result that was
// recorded first stays. If both are new at the same time, or both are recorded, as old
// controllers could do, success wins.
type indexProgress struct{ succeededIndexes, failedIndexes indexset.Set }

// and adds indexes that have newly succeeded, or newly failed for good.
func (p indexProgress) and(succeeded, failed indexset.Set) indexProgress {
	wasFailed := p.failedIndexes.Minus(p.succeededIndexes)
	succeeded = p.succeededIndexes.Union(succeeded.Minus(wasFailed))
	return indexProgress{succeeded, wasFailed.Union(failed.Minus(succeeded))}
}

// taken are the indexes that need no pod: those that are done or busy.
func (p indexProgress) taken(busy indexset.Set) indexset.Set {
	return p.succeededIndexes.Union(p.failedIndexes).Union(busy)
}

// missing are the lowest n indexes below completions that need a pod.
func (p indexProgress) missing(busy indexset.Set, n, completions int32) indexset.Set {
	return p.taken(busy).FirstMissing(n, completions)
}
