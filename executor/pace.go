package executor

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync"
	"time"
)

const (
	// A batch of more writes than may be in flight begins with a few of them, fewInFlight
	// at a time, to learn what one takes that has the API server nearly to itself.
	fewWrites, fewInFlight = 4, 2
	// patience is how many times longer a write may take for being one of many.
	patience = 2
)

// A pace is how many writes of one kind a Job has in flight, of the many that it
// has to make: about as many as the API server works on at the same time, which
// is told by how long the answers take. What is beyond that waits there, in front
// of everybody else's writes, and nothing is done sooner for it.
type pace struct {
	limit int

	mu sync.Mutex
	// width is between fewInFlight and limit.
	width     float64
	few, many mean
}

// mean is a mean duration of which the newest count most; 0 before the first.
type mean time.Duration

func (m *mean) add(d time.Duration) {
	if *m == 0 {
		*m = mean(d)
		return
	}
	*m += (mean(d) - *m) / 16
}

func newPace(limit int) *pace { return &pace{limit: limit, width: float64(limit)} }

// now is how many writes a Job may have in flight.
func (p *pace) now() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.width)
}

// learn takes in how long a write took: few says that it was one of few.
func (p *pace) learn(took time.Duration, few bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if few {
		p.few.add(took)
		return
	}
	p.many.add(took)
	step := 1 / p.width
	if p.many > patience*p.few {
		step = -step
	}
	p.width = min(max(p.width+step, min(fewInFlight, float64(p.limit))), float64(p.limit))
}

// parallel runs f for 0 to n-1 with the writes that one Job may have in flight.
// It returns one of the errors, and how many there are.
func (e *Executor) parallel(ctx context.Context, p *pace, n int, f func(ctx context.Context, i int) error) error {
	b := &batch{ctx: ctx, slots: e.writing, pace: p, n: n, write: f}
	b.running = 1
	b.wg.Go(b.work)
	b.wg.Wait()
	if b.failed > 1 {
		return fmt.Errorf("%d of %d failed, one of them: %w", b.failed, n, b.first)
	}
	return b.first
}

// A batch is the writes of one call of parallel. As many goroutines as may write
// take one after the other: a stack that has grown to the depth of a request
// serves the next one.
type batch struct {
	ctx   context.Context
	slots chan struct{}
	pace  *pace
	n     int
	write func(ctx context.Context, i int) error

	wg            sync.WaitGroup
	mu            sync.Mutex
	next, running int
	failed        int
	first         error
}

func (b *batch) work() {
	for i, ok := b.take(); ok; i, ok = b.take() {
		b.slots <- struct{}{}
		took, err := b.timed(i)
		<-b.slots
		if took > 0 {
			b.pace.learn(took, i < fewWrites)
		}
		if err != nil {
			b.fail(err)
		}
	}
}

// take gives out the next write, and ends the goroutine that asks when there are
// more than may write. It starts others when there are fewer.
func (b *batch) take() (i int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	width := b.width()
	if b.next == b.n || b.running > width {
		b.running--
		return 0, false
	}
	i = b.next
	b.next++
	for b.running < min(width, b.n-i) {
		b.running++
		b.wg.Go(b.work)
	}
	return i, true
}

// width is how many of the batch may be in flight. b.mu must be held.
func (b *batch) width() int {
	switch {
	case !b.large():
		return b.n
	case b.next < fewWrites:
		return min(fewInFlight, b.pace.limit)
	default:
		return b.pace.now()
	}
}

// large: there are more writes than may be in flight. Only these are timed: what
// the few writes of small Jobs take says how busy others keep the API server.
func (b *batch) large() bool { return b.n > b.pace.limit }

// timed makes a write, and says how long the API server took to answer. What the
// write waits for the client's own rate limit does not count. 0: it is not known.
func (b *batch) timed(i int) (time.Duration, error) {
	if !b.large() {
		return 0, b.write(b.ctx, i)
	}
	var mu sync.Mutex
	var sent, answered time.Time
	ctx := httptrace.WithClientTrace(b.ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) {
			mu.Lock()
			defer mu.Unlock()
			if sent.IsZero() {
				sent = time.Now()
			}
		},
		GotFirstResponseByte: func() {
			mu.Lock()
			defer mu.Unlock()
			answered = time.Now()
		},
	})
	err := b.write(ctx, i)
	mu.Lock()
	defer mu.Unlock()
	return answered.Sub(sent), err
}

func (b *batch) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed++
	if b.first == nil {
		b.first = err
	}
}
