package events

import "sync"

// A backlog holds the events that are recorded and not sent yet. It is made by
// newBacklog.
type backlog struct {
	mu      sync.Mutex
	closed  bool
	queued  map[object][]*event // Of each object, the oldest first.
	pending int                 // The number of events in queued.
	empty   chan struct{}       // Closed when pending gets 0; nil if nobody waits for it.
	lastAt  int64               // The time in the name of the last event.
	full    bool                // There was no room for the last event.
	posting map[string]int      // Posters at work, by namespace.
	parked  map[string][]object // Objects that wait for a poster of their namespace.
}

func newBacklog() backlog {
	return backlog{queued: map[object][]*event{}, posting: map[string]int{}, parked: map[string][]object{}}
}

// add adds an event. If there is no room, it returns the reason to drop the event, and
// whether this is the first event in a row without room.
func (b *backlog) add(o object, ev *event) (drop string, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return dropStopped, false
	case b.pending >= maxQueued:
		first, b.full = !b.full, true
		return dropFull, first
	}
	b.full = false
	ev.named = b.nextName(ev.at.UnixNano())
	b.queued[o] = append(b.queued[o], ev)
	b.pending++
	return "", false
}

// nextName returns a time for the name of an event, at or after the given one. No two
// events get the same. b.mu must be held.
func (b *backlog) nextName(at int64) int64 {
	b.lastAt = max(b.lastAt+1, at)
	return b.lastAt
}

// anotherName returns another time for the name of the event.
func (b *backlog) anotherName(ev *event) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.nextName(ev.named)
}

// oldest returns the object's oldest event, for a poster to send. If the namespace has its share
// of posters already, oldest parks the object and returns no event. An object may be parked
// twice, and may have no events left when its second turn comes. Then oldest returns the next
// parked object as unparked, because nothing else would enqueue that one.
func (b *backlog) oldest(o object) (ev *event, unparked *object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queued[o]) == 0 {
		return nil, b.unpark(o.namespace)
	}
	if b.posting[o.namespace] >= namespacePosters {
		b.parked[o.namespace] = append(b.parked[o.namespace], o)
		return nil, nil
	}
	b.posting[o.namespace]++
	return b.queued[o][0], nil
}

// posted gives a poster back to the namespace, and returns the object whose turn it is.
func (b *backlog) posted(namespace string) (unparked *object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.posting[namespace]--; b.posting[namespace] == 0 {
		delete(b.posting, namespace)
	}
	return b.unpark(namespace)
}

// unpark returns the object of the namespace that has waited longest; nil if none waits.
// b.mu must be held.
func (b *backlog) unpark(namespace string) *object {
	waiting := b.parked[namespace]
	if len(waiting) == 0 {
		return nil
	}
	if b.parked[namespace] = waiting[1:]; len(waiting) == 1 {
		delete(b.parked, namespace)
	}
	return &waiting[0]
}

// remove removes the object's oldest event, and reports whether there are more.
func (b *backlog) remove(o object) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queued[o][0] = nil
	b.queued[o] = b.queued[o][1:]
	b.pending--
	if b.pending == 0 && b.empty != nil {
		close(b.empty)
		b.empty = nil
	}
	if len(b.queued[o]) > 0 {
		return true
	}
	delete(b.queued, o)
	return false
}

// close takes no more events. The channel is closed once all are removed.
func (b *backlog) close() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	empty := make(chan struct{})
	if b.pending == 0 {
		close(empty)
	} else {
		b.empty = empty
	}
	return empty
}

// drop removes all events, takes no more, and returns how many there were.
func (b *backlog) drop() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.pending
	b.closed, b.pending = true, 0
	clear(b.queued)
	return n
}
