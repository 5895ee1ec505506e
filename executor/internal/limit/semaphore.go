package limit

import (
	"context"
	"sync"
)

// share bounds what one key may hold: at most share times the slots that it leaves free, but always one.
// So some slots are left for the next key: of 64, the first key gets at most 48, the second 12, the
// third 3.
const share = 3

// Semaphore has a fixed number of slots, and shares them between keys. Waiters of one key get slots in
// order, and keys take turns. A key whose work hangs does not take all slots: with namespaces as
// keys, for example, a webhook that hangs in one namespace does not stop the others. (x/sync's
// semaphore has one queue and no keys.) It is made by NewSemaphore.
type Semaphore struct {
	slots int
	mu    sync.Mutex
	free  int
	keys  map[string]*holder // The keys that hold slots or wait for one.
	// waiting are the keys with waiters, the next in turn first.
	waiting []string
	waiters int
}

type holder struct {
	held  int
	queue []*waiter
}

type waiter struct {
	ready     func() // Called once, with Semaphore.mu held.
	cancelled bool
}

// NewSemaphore returns a Semaphore with that many slots.
func NewSemaphore(slots int) *Semaphore {
	return &Semaphore{slots: slots, free: slots, keys: map[string]*holder{}}
}

// Start calls f in a goroutine of its own as soon as there is a slot for the key,
// and releases the slot when f returns. It does not wait.
func (s *Semaphore) Start(key string, f func()) {
	run := func() {
		defer s.release(key)
		f()
	}
	s.enqueue(key, &waiter{ready: func() { go run() }})
}

// Acquire waits for a slot for the key. The caller must call release once. If ctx ends
// first, Acquire returns the error of ctx and no release.
func (s *Semaphore) Acquire(ctx context.Context, key string) (release func(), err error) {
	granted := make(chan struct{})
	w := &waiter{ready: func() { close(granted) }}
	s.enqueue(key, w)
	release = func() { s.release(key) }
	select {
	case <-granted:
		return release, nil
	case <-ctx.Done():
	}
	if s.cancel(w, granted) {
		release()
	}
	return nil, ctx.Err()
}

// Used returns how many slots are held.
func (s *Semaphore) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots - s.free
}

// Waiting returns how many wait for a slot.
func (s *Semaphore) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiters
}

func (s *Semaphore) enqueue(key string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.keys[key]
	if h == nil {
		h = &holder{}
		s.keys[key] = h
	}
	if len(h.queue) == 0 {
		s.waiting = append(s.waiting, key)
	}
	h.queue = append(h.queue, w)
	s.waiters++
	s.serve()
}

// cancel withdraws a waiter, and reports whether it already has a slot.
func (s *Semaphore) cancel(w *waiter, granted <-chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-granted:
		return true
	default:
		w.cancelled = true
		s.waiters--
		return false
	}
}

func (s *Semaphore) release(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.keys[key]
	h.held--
	s.free++
	if h.held == 0 && len(h.queue) == 0 {
		delete(s.keys, key)
	}
	s.serve()
}

// serve gives free slots to waiters. s.mu must be held.
func (s *Semaphore) serve() {
	for i := 0; i < len(s.waiting) && s.free > 0; {
		key := s.waiting[i]
		h := s.keys[key]
		h.dropCancelled()
		if len(h.queue) > 0 && h.held > 0 && h.held >= share*(s.free-1) {
			i++ // This key has its share. Try the next one.
			continue
		}
		s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
		s.grant(key, h)
		i = 0
	}
}

// grant gives a slot to the first waiter of a key, and moves the key to the end of the
// line. s.mu must be held.
func (s *Semaphore) grant(key string, h *holder) {
	if len(h.queue) > 0 {
		w := h.queue[0]
		h.queue = h.queue[1:]
		h.held++
		s.free--
		s.waiters--
		w.ready()
	}
	if h.dropCancelled(); len(h.queue) > 0 {
		s.waiting = append(s.waiting, key)
	}
	if h.held == 0 && len(h.queue) == 0 {
		delete(s.keys, key)
	}
}

func (h *holder) dropCancelled() {
	for len(h.queue) > 0 && h.queue[0].cancelled {
		h.queue = h.queue[1:]
	}
}
