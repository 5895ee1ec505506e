package tracker

import "slices"

// staleQueue is how many stale records the queue may always have.
const staleQueue = 16

// enqueue adds a record to the end of the queue, unless it is in the queue.
func (t *Tracker) enqueue(r *record) {
	if r.queued {
		return
	}
	r.queued = true
	t.queue = append(t.queue, r)
}

// tidyQueue removes records that are not pending any more: those at the front, and all
// others once they are more than half of the queue.
func (t *Tracker) tidyQueue() {
	for len(t.queue) > 0 && !t.isPending(t.queue[0]) {
		t.queue[0].queued = false
		t.queue[0] = nil
		t.queue = t.queue[1:]
	}
	if len(t.queue) <= 2*len(t.pending)+staleQueue {
		return
	}
	t.queue = slices.DeleteFunc(t.queue, func(r *record) bool {
		r.queued = t.isPending(r)
		return !r.queued
	})
}

func (t *Tracker) isPending(r *record) bool { return t.pending[r.pod.UID] == r }
