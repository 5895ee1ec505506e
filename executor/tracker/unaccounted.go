package tracker

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// staleQueue is how many removed records the queue may contain in any case.
const staleQueue = 16

// unaccounted are the pods that are finished or being deleted and have the finalizer.
type unaccounted struct {
	records map[types.UID]*record
	// queue holds the records in the order in which they were added, and some that were
	// removed since.
	queue []*record

	// Sums, so that a view need not go through the pods that it does not list.
	succeeded, terminating         int32
	succeededIndexes, otherIndexes indexes
}

// add adds a record. One that was removed and is still in the queue gets its old place
// back: so a new version of a pod does not lose the place of the old one.
func (u *unaccounted) add(r *record) {
	u.records[r.pod.UID] = r
	u.count(r, 1)
	if !r.queued {
		r.queued = true
		u.queue = append(u.queue, r)
	}
}

func (u *unaccounted) remove(r *record) {
	if u.has(r) {
		u.count(r, -1)
		delete(u.records, r.pod.UID)
	}
}

func (u *unaccounted) has(r *record) bool { return u.records[r.pod.UID] == r }

// count adds a record to the sums, sign times: 1 or -1.
func (u *unaccounted) count(r *record, sign int32) {
	countIf(&u.terminating, !r.pod.Ended(), sign)
	of := &u.otherIndexes
	if r.pod.Phase() == corev1.PodSucceeded {
		u.succeeded += sign
		of = &u.succeededIndexes
	}
	if r.share.index != NoIndex {
		of.change(r.share.index, sign)
	}
}

// tidy takes removed records out of the queue: those at its front, and all others once
// they are more than half of it.
func (u *unaccounted) tidy() {
	for len(u.queue) > 0 && !u.has(u.queue[0]) {
		u.queue[0].queued = false
		u.queue[0] = nil
		u.queue = u.queue[1:]
	}
	if len(u.queue) <= 2*len(u.records)+staleQueue {
		return
	}
	u.queue = slices.DeleteFunc(u.queue, func(r *record) bool {
		r.queued = u.has(r)
		return !r.queued
	})
}
