package engine

import "jobpolicy.dev/engine/indexset"

// An indexProgress says which indexes have succeeded and which have failed. No index is in
// both sets, because the API server refuses such a status (invariant I5). If the status has
// recorded one result of an index, that result stays. If both results are new, success
// wins. It also wins if both are recorded, which old controllers could do.
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
