package tracker

import "slices"

// staleQueue is how much of the queue may be stale however short it is.
const staleQueue = 16

// enqueue puts a record at the end of the queue, unless it has a place.
func (t *Tracker) enqueue(r *record) {
	if r.queued {
		return
	}
	r.queued = true
	t.queue = append(t.queue, r)
}

// tidyQueue drops what is not pending any more: what stands in front, and all of it
// once that is most of the queue.
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
