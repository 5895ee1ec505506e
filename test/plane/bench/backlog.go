package bench

import "sync"

// A backlog is an unbounded queue of work for a fixed number of goroutines. Adding
// work never blocks.
type backlog struct {
	mu     sync.Mutex
	some   sync.Cond
	work   []func()
	closed bool
	all    sync.WaitGroup
}

func newBacklog(workers int) *backlog {
	b := &backlog{}
	b.some.L = &b.mu
	for range workers {
		b.all.Go(b.serve)
	}
	return b
}

func (b *backlog) add(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.work = append(b.work, f)
	b.some.Signal()
}

// close drops work that has not begun, and waits for work that has.
func (b *backlog) close() {
	b.mu.Lock()
	b.work, b.closed = nil, true
	b.some.Broadcast()
	b.mu.Unlock()
	b.all.Wait()
}

func (b *backlog) serve() {
	for {
		f := b.next()
		if f == nil {
			return
		}
		f()
	}
}

func (b *backlog) next() func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.work) == 0 && !b.closed {
		b.some.Wait()
	}
	if b.closed {
		return nil
	}
	f := b.work[0]
	b.work[0] = nil
	b.work = b.work[1:]
	return f
}
