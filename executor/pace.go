package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/semaphore"
)

const (
	// fewInFlight is how many writes of a batch are few: what one of them takes is
	// what the API server needs for it, beside what it does for others.
	fewInFlight = 2
	// A batch begins with so many writes, few at a time, if what one of few takes
	// was not learned for so long.
	fewWrites = 4
	fewPeriod = 5 * time.Second
	// mayWait is how many of a Job's own writes may wait at the API server.
	mayWait = 2
)

// A pace is how many writes of one kind a Job has in flight, of the many that it
// has to make, while other Jobs are at work, too: so many that about two of them
// wait at the API server, in front of the others' writes. How many wait is told by
// how long the answers take: what one of many takes beyond one of few, it waits
// (TCP Vegas tells by the same how full a path is). Every Job has its own, because
// what a write takes depends on its namespace's admission, too. The zero value is
// as wide as it may be.
type pace struct {
	mu sync.Mutex
	// narrower is how many fewer writes there are than there may be. A fraction
	// counts as one, so that they get down to few and few is learned anew.
	narrower  float64
	few, many mean
	fewAt     time.Time // when few was learned
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

// width is how many writes the Job may have in flight, of at most limit.
func (p *pace) width(limit int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(float64(limit) - p.narrower)
}

// learn takes in how long a write took: few says that it was one of few.
func (p *pace) learn(took time.Duration, few bool, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	crowded, width := false, float64(limit)-p.narrower
	if few {
		p.few.add(took)
		p.fewAt = time.Now()
	} else {
		p.many.add(took)
		crowded = p.few > 0 && width*float64(p.many-p.few) > mayWait*float64(p.many)
	}
	step := 1 / width
	if !crowded {
		step = -step
	}
	p.narrower = min(max(0, p.narrower+step), max(0, float64(limit-fewInFlight)))
}

// stale reports whether it is long ago that few was learned.
func (p *pace) stale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.fewAt) > fewPeriod
}

// turns says who has been at work lately.
type turns struct {
	mu sync.Mutex
	// last had the last round, and other the last one of any other Job.
	last, other turn
}

type turn struct {
	job types.UID
	at  time.Time
}

// lonePeriod is how long no other Job may have had a round for one to be alone.
const lonePeriod = 5 * time.Second

func (t *turns) take(job types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last.job != job {
		t.other = t.last
	}
	t.last = turn{job: job, at: time.Now()}
}

// alone reports whether no other Job is at work. There is nobody then whose writes
// would wait, and many at once cost the API server less each: it reads, commits
// and tells of several at a time.
func (t *turns) alone(job types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	others := t.last
	if others.job == job {
		others = t.other
	}
	return others.job == "" || time.Since(others.at) > lonePeriod
}

// parallel runs f for 0 to n-1 with the writes that one Job may have in flight.
// It returns one of the errors, and how many there are.
func (e *Executor) parallel(ctx context.Context, s *jobState, p *pace, n int, f func(ctx context.Context, i int) error) error {
	return e.batch(ctx, s, p, n, f).run()
}

// cautiously is like parallel, but begins with one write, has one more in flight
// for each that succeeded, and begins none after one that failed.
func (e *Executor) cautiously(ctx context.Context, s *jobState, p *pace, n int, f func(ctx context.Context, i int) error) error {
	b := e.batch(ctx, s, p, n, f)
	b.cautious = true
	return b.run()
}

func (e *Executor) batch(ctx context.Context, s *jobState, p *pace, n int, f func(ctx context.Context, i int) error) *batch {
	b := &batch{ctx: ctx, slots: e.writing, namespace: s.namespace, pace: p, limit: e.cfg.MaxJobWrites, n: n, write: f}
	b.lone = func() int {
		if e.turns.alone(s.uid) {
			return e.cfg.LoneJobWrites
		}
		return 0
	}
	b.large = n > b.limit
	b.probing = b.large && p.stale()
	return b
}

// A batch is the writes of one call of parallel or cautiously. As many goroutines
// as may write take one after the other: a stack that has grown to the depth of a
// request serves the next one.
type batch struct {
	ctx       context.Context
	slots     *semaphore.Semaphore
	namespace string
	pace      *pace
	limit, n  int
	write     func(ctx context.Context, i int) error
	// lone is how many the Job may have in flight while no other is at work, else 0.
	lone func() int
	// large: there are more writes than may be in flight. Only these are timed, and
	// only these are slowed down.
	large bool
	// cautious: see cautiously.
	cautious bool

	wg          sync.WaitGroup
	mu          sync.Mutex
	probing     bool
	next, ended int
	running     int // goroutines
	failed      int
	first       error
}

func (b *batch) run() error {
	b.running = 1
	b.wg.Go(b.work)
	b.wg.Wait()
	switch {
	case b.ended < b.n:
		return fmt.Errorf("%d of %d failed and %d were not tried; one failed with: %w", b.failed, b.n, b.n-b.ended, b.first)
	case b.failed > 1:
		return fmt.Errorf("%d of %d failed, one of them: %w", b.failed, b.n, b.first)
	default:
		return b.first
	}
}

func (b *batch) work() {
	for i, few, ok := b.take(); ok; i, few, ok = b.take() {
		took, err := b.inSlot(i)
		if !errors.Is(err, errNotTried) {
			b.end(took, few, err)
		}
	}
}

// errNotTried: another write has failed while this one waited for its slot.
var errNotTried = errors.New("not tried")

func (b *batch) inSlot(i int) (time.Duration, error) {
	release, err := b.slots.Acquire(b.ctx, b.namespace)
	if err != nil {
		return 0, err
	}
	defer release()
	if b.stopped() {
		return 0, errNotTried
	}
	return b.timed(i)
}

// take gives out the next write, and says whether it is one of few. It ends the
// goroutine that asks when there are more than may write, and starts others when
// there are fewer.
func (b *batch) take() (i int, few, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	width := b.width()
	if b.next == b.n || b.running > width || b.failing() {
		b.running--
		return 0, false, false
	}
	i = b.next
	b.next++
	for b.running < min(width, b.n-i) {
		b.running++
		b.wg.Go(b.work)
	}
	return i, b.running <= fewInFlight, true
}

// failing reports that no more writes are to be begun. b.mu must be held.
func (b *batch) failing() bool { return b.cautious && b.first != nil }

func (b *batch) stopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failing()
}

// width is how many of the batch may be in flight. b.mu must be held.
func (b *batch) width() int {
	width := b.n
	switch {
	case b.probing && b.ended < fewWrites:
		width = min(fewInFlight, b.limit)
	case b.large:
		width = max(b.pace.width(b.limit), b.lone())
	}
	if b.cautious {
		width = min(width, 1+b.ended)
	}
	return width
}

// end takes in how a write ended. It was one of few if it was so from its
// beginning to its end.
func (b *batch) end(took time.Duration, few bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended++
	if took > 0 {
		b.pace.learn(took, few && b.running <= fewInFlight, b.limit)
	}
	if err == nil {
		return
	}
	b.failed++
	if b.first == nil {
		b.first = err
	}
}
