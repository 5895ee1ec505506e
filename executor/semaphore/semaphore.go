// Package semaphore bounds how much goes on at the same time, in total and for each
// key. Of what many keys share, one whose holders never come back must not take all:
// the API server's answers to one namespace, say, behind a webhook that hangs.
package semaphore

import (
	"context"
	"sync"
)

// share is how much a key may hold for each slot that it leaves free, without the
// last one. However many keys take their share, some slots are left for the next
// one: of 64, the first gets 48, the second 12, the third 3.
const share = 3

// Semaphore has a fixed number of slots. Who waits for one is served in order within
// a key, and keys take turns. It is made by New.
type Semaphore struct {
	mu   sync.Mutex
	free int
	used int
	keys map[string]*holder // Those that hold or wait.
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

// New returns a Semaphore with so many slots.
func New(slots int) *Semaphore {
	return &Semaphore{free: slots, keys: map[string]*holder{}}
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

// Acquire waits for a slot for the key. The caller must call release once, unless
// there is an error, which is that of ctx.
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

// Used is how many slots are held.
func (s *Semaphore) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// Waiting is how many wait for a slot.
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

// cancel takes a waiter back, and reports whether it has a slot already.
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
	s.used--
	if h.held == 0 && len(h.queue) == 0 {
		delete(s.keys, key)
	}
	s.serve()
}

// serve gives slots to those who may have one. s.mu must be held.
func (s *Semaphore) serve() {
	for i := 0; i < len(s.waiting) && s.free > 0; {
		key := s.waiting[i]
		h := s.keys[key]
		h.dropCancelled()
		if len(h.queue) > 0 && h.held > 0 && h.held >= share*(s.free-1) {
			i++ // It has its share; another key may not.
			continue
		}
		s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
		s.grant(key, h)
		i = 0
	}
}

// grant gives a slot to the first waiter of a key, and lets others have their turn
// before the next. s.mu must be held.
func (s *Semaphore) grant(key string, h *holder) {
	if len(h.queue) > 0 {
		w := h.queue[0]
		h.queue = h.queue[1:]
		h.held++
		s.free--
		s.used++
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
