package views

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxCells is how many ranges of indexes are drawn.
const maxCells = 200

// A cell is a range of indexes with the number of indexes in each state. The other indexes
// have no pod yet.
type cell struct {
	First       int32 `json:"first"`
	Last        int32 `json:"last"`
	Succeeded   int32 `json:"succeeded"`
	Failed      int32 `json:"failed"`
	Active      int32 `json:"active"`
	Terminating int32 `json:"terminating"`
}

// cells returns the indexes of an Indexed Job in at most maxCells ranges of one length. Its
// cost grows with the ranges of the index sets, not with the number of pods.
func cells(job *batchv1.Job, pods tracker.Census) []cell {
	n := ptr.Deref(job.Spec.Completions, 0)
	if !wire.Indexed(job) || n < 1 {
		return nil
	}
	width := (n-1)/maxCells + 1
	out := make([]cell, (n-1)/width+1)
	for i := range out {
		first := int32(i) * width
		out[i].First, out[i].Last = first, first+min(width-1, n-1-first)
	}
	tally := func(set *jobpolicyv1.IndexSet, add func(*cell, int32)) {
		for _, r := range set.GetRanges() {
			for at := r.GetFirst(); at <= min(r.GetLast(), n-1); {
				c := &out[at/width]
				last := min(r.GetLast(), c.Last)
				add(c, last-at+1)
				at = last + 1
			}
		}
	}
	tally(parsed(&job.Status.CompletedIndexes), func(c *cell, k int32) { c.Succeeded += k })
	tally(parsed(job.Status.FailedIndexes), func(c *cell, k int32) { c.Failed += k })
	tally(pods.Summary.GetActiveIndexes(), func(c *cell, k int32) { c.Active += k })
	tally(pods.Summary.GetTerminatingIndexes(), func(c *cell, k int32) { c.Terminating += k })
	return out
}

// parsed reads a status's list of indexes. Nil: there is none, or it is not valid.
func parsed(list *string) *jobpolicyv1.IndexSet {
	if list == nil {
		return nil
	}
	set, err := wire.ParseIndexes(*list)
	if err != nil {
		return nil
	}
	return set
}
