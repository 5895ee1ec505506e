package policyserver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/refusal"
)

// A pool is a limited resource that all callers share. One caller gets at most half of
// it, so that the other half is left for the others.
type pool struct {
	size int64
	most int64 // of one caller
	all  *semaphore.Weighted
	held atomic.Int64
}

func newPool(size int64) *pool {
	return &pool{size: size, most: max(1, size/2), all: semaphore.NewWeighted(size)}
}

// A share is what one caller may have of a pool.
type share struct {
	pool *pool
	own  *semaphore.Weighted
	held atomic.Int64
}

func (p *pool) share() *share { return &share{pool: p, own: semaphore.NewWeighted(p.most)} }

var (
	errOverShare  = errors.New("the caller holds its share")
	errOverloaded = errors.New("all callers together hold nearly everything")
)

// acquire waits for n until the context is done.
func (s *share) acquire(ctx context.Context, n int64) error {
	if s.own.Acquire(ctx, n) != nil {
		return errOverShare
	}
	if s.pool.all.Acquire(ctx, n) != nil {
		s.own.Release(n)
		return errOverloaded
	}
	s.add(n)
	return nil
}

// acquireWithin waits for n, but no longer than timeout.
func (s *share) acquireWithin(ctx context.Context, timeout time.Duration, n int64) error {
	if s.tryAcquire(n) == nil { // This is nearly always so, and needs no timer.
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.acquire(bounded, n)
}

// tryAcquire does not wait.
func (s *share) tryAcquire(n int64) error {
	if !s.own.TryAcquire(n) {
		return errOverShare
	}
	if !s.pool.all.TryAcquire(n) {
		s.own.Release(n)
		return errOverloaded
	}
	s.add(n)
	return nil
}

// tryAcquireFair is tryAcquire, and leaves something to others: a caller gets no more while
// it would hold more than what is free. So one caller gets half of the pool, a second one
// half of the rest, and there is always a rest for one more. Packet switches share their
// buffers by this rule, which is called dynamic thresholds (Choudhury and Hahne, 1998). It
// is for what a caller may hold for long without doing anything.
func (s *share) tryAcquireFair(n int64) error {
	free := s.pool.size - s.pool.held.Load()
	if then := s.held.Load() + n; then <= s.pool.most && then > free {
		return errOverloaded
	}
	return s.tryAcquire(n)
}

func (s *share) add(n int64) {
	s.held.Add(n)
	s.pool.held.Add(n)
}

func (s *share) release(n int64) {
	s.add(-n)
	s.pool.all.Release(n)
	s.own.Release(n)
}

// pools are the resources that callers share. Memory is counted in bytes.
type pools struct {
	// calls are the open calls, waiting ones included.
	calls *pool
	// received is memory for requests as they came over the wire.
	received *pool
	// decoded is memory for large decoded requests, while they are decided on.
	decoded *pool
	// answers is memory for answers, until they are written to the connection.
	answers *pool
	// processors bounds the calls that are decided on at a time. largeRequests bounds how many
	// of them have a large request.
	processors, largeRequests *pool
}

// A caller stands for everybody who has the same identity. All its connections share
// what one caller may have.
type caller struct {
	identity string
	// name is the identity as people see it, and label its name in metrics.
	name, label   string
	connections   []*connection // the oldest first; guarded by callers.mu
	handled       int           // requests that are being handled; guarded by callers.mu
	calls         *share
	received      *share
	decoded       *share
	answers       *share
	processors    *share
	largeRequests *share
	spans         *rate.Limiter // of the spans that are started
}

func newCaller(identity, label string, p *pools) *caller {
	return &caller{
		identity:      identity,
		name:          shown(identity),
		label:         label,
		calls:         p.calls.share(),
		received:      p.received.share(),
		decoded:       p.decoded.share(),
		answers:       p.answers.share(),
		processors:    p.processors.share(),
		largeRequests: p.largeRequests.share(),
		spans:         rate.NewLimiter(spansPerSecond, spansPerSecond),
	}
}

// noRoom is the refusal of a call that got no room in a pool. err is that of the pool,
// and kind is what texts call the resource.
func (c *caller) noRoom(err error, kind string) error {
	if errors.Is(err, errOverloaded) {
		return refusal.Refusal{
			Code: codes.ResourceExhausted, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_OVERLOADED,
			Text: "the engine has no more " + kind + " to give, ask again later",
		}.Err()
	}
	return refusal.Refusal{
		Code: codes.ResourceExhausted, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_OVER_SHARE,
		Text:     "this caller holds its share of the engine's " + kind + ", send fewer calls at a time",
		Metadata: map[string]string{"caller": c.name},
	}.Err()
}

// readsAnswers returns nil if there is room for one more answer. Without it no decision
// is made, because its answer could not be sent.
func (c *caller) readsAnswers() error {
	const usual = 64 << 10 // Few answers are larger.
	if err := c.answers.tryAcquireFair(usual); err != nil {
		return c.noAnswer(err)
	}
	c.answers.release(usual)
	return nil
}

// noAnswer is the refusal of a call for whose answer there is no memory. err is that of the
// pool.
func (c *caller) noAnswer(err error) error {
	if errors.Is(err, errOverloaded) { // by the answers of others
		return c.noRoom(err, "memory for answers")
	}
	return refusal.Refusal{
		Code: codes.ResourceExhausted, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_UNREAD_ANSWERS,
		Text:     "this caller has too many answers that it did not read yet",
		Metadata: map[string]string{"caller": c.name},
	}.Err()
}
