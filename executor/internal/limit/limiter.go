package limit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Limiter bounds the writes of one kind that a Job has in flight. It is made by
// Pool.Limiter or Pool.SlowStart.
type Limiter struct {
	pool      *Pool
	namespace string
	job       types.UID
	// slowStart: see Pool.SlowStart.
	slowStart bool
	vegas     vegas
}

// Limiter returns a Limiter for a Job's writes of one kind.
func (p *Pool) Limiter(namespace string, job types.UID) *Limiter {
	return &Limiter{pool: p, namespace: namespace, job: job}
}

// SlowStart returns a Limiter that begins with one write and allows one more in flight for
// each write that has ended. After a failure it begins no more writes. So if a quota is
// exhausted, for example, a few writes fail, and not a thousand.
func (p *Pool) SlowStart(namespace string, job types.UID) *Limiter {
	l := p.Limiter(namespace, job)
	l.slowStart = true
	return l
}

// Do calls f for each i from 0 to n-1, concurrently, and returns when all calls have ended.
// After a failure, a Limiter made by SlowStart makes no more calls. The error wraps one of the
// errors, and says how many calls failed and how many were not made. It is nil if all
// succeeded.
func (l *Limiter) Do(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if n == 0 {
		return nil // Most reconciles have nothing to write.
	}
	b := &batch{Limiter: l, ctx: ctx, n: n, write: f}
	b.measuring = b.large() && l.vegas.baselineExpired(time.Now())
	return b.run()
}

// A batch holds the writes of one call of Do. Each of its goroutines makes many writes, one
// after the other, so that its stack has to grow only once.
type batch struct {
	*Limiter
	ctx   context.Context
	n     int
	write func(ctx context.Context, i int) error

	wg        sync.WaitGroup
	mu        sync.Mutex
	measuring bool // The first writes measure the baseline.
	next      int
	running   int // goroutines
	ended     int
	failed    int
	firstErr  error
}

// large reports whether the batch has more writes than one Job may have in flight. Only
// large batches are timed and slowed down.
func (b *batch) large() bool { return b.n > b.pool.cfg.PerJob }

func (b *batch) run() error {
	b.running = 1
	b.wg.Go(b.work)
	b.wg.Wait()
	switch {
	case b.ended < b.n:
		return fmt.Errorf("%d of %d failed and %d were not tried; one failed with: %w", b.failed, b.n, b.n-b.ended, b.firstErr)
	case b.failed > 1:
		return fmt.Errorf("%d of %d failed, one of them: %w", b.failed, b.n, b.firstErr)
	default:
		return b.firstErr
	}
}

func (b *batch) work() {
	for i, measures, ok := b.take(); ok; i, measures, ok = b.take() {
		b.inSlot(i, measures)
	}
}

// inSlot waits for a slot and makes one write. It releases the slot after it has recorded
// the end, so that the next write in the slot knows of a failure.
func (b *batch) inSlot(i int, measures bool) {
	release, err := b.pool.Acquire(b.ctx, b.namespace)
	if err != nil {
		b.end(0, measures, err)
		return
	}
	defer release()
	if b.stopped() {
		return
	}
	var latency time.Duration
	if b.large() {
		latency, err = timed(b.ctx, func(ctx context.Context) error { return b.write(ctx, i) })
	} else {
		err = b.write(b.ctx, i)
	}
	b.end(latency, measures, err)
}

// take returns the next write, and whether it may measure the baseline because few are in
// flight. ok is false if the calling goroutine has to end: there is nothing more to begin,
// or more goroutines run than the limit allows. If fewer run, take starts others.
func (b *batch) take() (i int, measures, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := b.limit()
	if b.next == b.n || b.running > limit || b.failing() {
		b.running--
		return 0, false, false
	}
	i = b.next
	b.next++
	for b.running < min(limit, b.n-i) {
		b.running++
		b.wg.Go(b.work)
	}
	return i, b.running <= baselineInFlight, true
}

// failing reports whether no more writes are to begin, after a failure. b.mu must be held.
func (b *batch) failing() bool { return b.slowStart && b.firstErr != nil }

func (b *batch) stopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failing()
}

// limit is how many writes of the batch may be in flight. b.mu must be held.
func (b *batch) limit() int {
	limit, most := b.n, b.pool.cfg.PerJob
	switch {
	case b.measuring && b.ended < baselineWrites:
		limit = min(baselineInFlight, most)
	case b.large():
		limit = b.vegas.limit(most)
		if b.pool.alone(b.job) {
			limit = max(limit, b.pool.cfg.Alone)
		}
	}
	if b.slowStart {
		limit = min(limit, 1+b.ended)
	}
	return limit
}

// end records how a write ended. It measures the baseline if few were in flight from
// its beginning to its end.
func (b *batch) end(latency time.Duration, measures bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended++
	if latency > 0 {
		b.vegas.observe(latency, measures && b.running <= baselineInFlight, b.pool.cfg.PerJob, time.Now())
	}
	if err == nil {
		return
	}
	b.failed++
	if b.firstErr == nil {
		b.firstErr = err
	}
}
