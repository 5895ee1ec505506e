package executor

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/telemetry"
)

const (
	// maxImmediateRounds is how many rounds may follow each other without a
	// pause. It bounds what a wrong decision could heat up (invariant I11).
	maxImmediateRounds = 10
	// maxOpenRounds bounds how many Jobs' decisions are carried out at once.
	maxOpenRounds = 256
	// maxDeferral is how long what is not pressing waits for a busy API server.
	maxDeferral = 10 * time.Second
	// maxWait bounds how far ahead a round is planned. The queue keeps a planned
	// one until its time, although its Job may be gone long before.
	maxWait = time.Hour
)

// wake makes a Job due. The first event of a quiet Job is acted on at once;
// while it is busy, rounds are a batch period apart, unless it is urgent. A Job
// that backs off after an error is not woken earlier.
func (e *Executor) wake(s *jobState, cause string, urgent bool) {
	now := time.Now()
	s.mu.Lock()
	if s.job == nil || !e.inCare(s.job) {
		s.mu.Unlock()
		return
	}
	if s.wakeCause == "" {
		s.wakeCause, s.wokenAt = cause, now
	}
	s.urgent, s.lazy = s.urgent || urgent, false
	delay := s.early(now, e.cfg.SyncBatchPeriod)
	s.mu.Unlock()
	e.queue.AddAfter(s.uid, delay)
}

// wakeLazily makes a Job due after a delay, or as soon as it may be: for news that
// nothing but a status follows from, which leaves the API server to others while
// it is busy.
func (e *Executor) wakeLazily(s *jobState, cause string, delay time.Duration) {
	now := time.Now()
	s.mu.Lock()
	if s.job == nil || !e.inCare(s.job) {
		s.mu.Unlock()
		return
	}
	if s.wakeCause == "" {
		s.wakeCause, s.wokenAt, s.lazy = cause, now, true
	}
	delay = max(s.early(now, e.cfg.SyncBatchPeriod), delay)
	s.mu.Unlock()
	e.queue.AddAfter(s.uid, delay)
}

// spaceStatuses takes in that a status was written. Routine ones are a period
// apart on average; of a Job that was quiet, two may follow each other. However
// many that are not routine were written, the next one is due within a period.
func (s *jobState) spaceStatuses(period time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.statusDue = earliest(latest(s.statusDue, now.Add(-period)).Add(period), now.Add(period))
}

// early is how long the Job has to wait for its next round; 0 when it is due.
// s.mu must be held.
func (s *jobState) early(now time.Time, batch time.Duration) time.Duration {
	at := s.notBefore
	if !s.urgent {
		at = latest(at, s.lastRound.Add(batch))
	}
	return max(0, at.Sub(now))
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// postponeStatus makes the next routine status later by what the releases after
// the last one have taken: while many pods were released, others have ended, and
// one status is to record as many as it may.
func (s *jobState) postponeStatus(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statusDue = s.statusDue.Add(by)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// plan makes a Job due later, at the latest.
func (e *Executor) plan(s *jobState, delay time.Duration) {
	delay = min(delay, maxWait)
	s.mu.Lock()
	s.planned = time.Now().Add(delay)
	s.mu.Unlock()
	e.queue.AddAfter(s.uid, delay)
}

// wakeUp is what woke a Job, and when. wait is above 0 when it is too early for
// a round: an event came while the one before was running.
type wakeUp struct {
	cause string
	at    time.Time
	wait  time.Duration
}

// busy reports whether the API server has enough to do: writes wait for a slot,
// or as many Jobs are at work as one Job may have writes in flight.
func (e *Executor) busy() bool {
	return e.writes.Waiting() > 0 || e.open.Used() > e.cfg.MaxJobWrites
}

// deferral is how long what is not pressing leaves a busy API server to others: not
// for ever, and not beyond the time for which a round was planned before such news
// came. s.mu must be held.
func (e *Executor) deferral(s *jobState, now time.Time) time.Duration {
	if !s.lazy || now.Sub(s.wokenAt) >= maxDeferral || !e.busy() {
		return 0
	}
	if s.planned.IsZero() {
		return e.cfg.StatusPeriod
	}
	return min(e.cfg.StatusPeriod, s.planned.Sub(now))
}

// takeWake begins a round, or says how long the Job has to wait for it.
func (e *Executor) takeWake(s *jobState) wakeUp {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	wait := max(s.early(now, e.cfg.SyncBatchPeriod), e.deferral(s, now))
	if wait > 0 {
		return wakeUp{wait: wait}
	}
	w := wakeUp{cause: s.wakeCause, at: s.wokenAt}
	s.wakeCause, s.urgent, s.lazy, s.lastRound, s.planned = "", false, false, now, time.Time{}
	s.atWork = true
	if w.cause != "" {
		return w
	}
	w.cause, w.at = telemetry.CauseTimer, now
	if s.failures > 0 {
		w.cause = telemetry.CauseRetry
	}
	return w
}

// dispatch hands due Jobs to goroutines until the queue is shut down, or lets them
// wait their turn, in which no namespace keeps the others waiting. A Job's rounds
// never overlap: the queue does not give a key out twice.
func (e *Executor) dispatch(stopped <-chan struct{}, work context.Context) {
	for {
		uid, shutdown := e.queue.Get()
		if shutdown {
			return
		}
		e.rounds.Add(1)
		e.open.Start(e.jobs.namespace(uid), func() {
			defer e.rounds.Done()
			defer e.queue.Done(uid)
			select {
			case <-stopped:
			default:
				e.process(work, stopped, uid)
			}
		})
	}
}

// process runs the rounds of one wake.
func (e *Executor) process(ctx context.Context, stopped <-chan struct{}, uid types.UID) {
	s, ok := e.jobs.find(uid)
	if !ok || !e.inCare(s.current()) {
		return
	}
	woken := e.takeWake(s)
	if woken.wait > 0 {
		e.queue.AddAfter(uid, woken.wait)
		return
	}
	defer s.rest()
	job := s.current()
	if job == nil {
		return
	}
	e.writes.Active(uid)
	ctx, root := e.tracer.Start(ctx, telemetry.SpanJobWoken, trace.WithNewRoot(), trace.WithTimestamp(woken.at), trace.WithAttributes(
		telemetry.AttrNamespace.String(job.Namespace), telemetry.AttrJobName.String(job.Name), telemetry.AttrJobUID.String(string(uid)), telemetry.AttrCause.String(woken.cause)))
	defer root.End()
	calls := e.podCalls(s)
	defer func() {
		if calls.Observed() {
			e.wake(s, telemetry.CausePodEvent, false)
		}
	}()
	for n := 1; ; n++ {
		next, err := e.round(ctx, s, calls)
		if err != nil {
			if calls.Written() {
				s.progressed() // What is left to do got less: no longer delay for it.
			}
			e.backOff(ctx, s, err)
			return
		}
		s.succeeded()
		select {
		case <-stopped:
			return
		default:
		}
		if next.again && n < maxImmediateRounds {
			continue
		}
		if next.again {
			next.after = e.cfg.SyncBatchPeriod
		}
		if next.after > 0 {
			e.plan(s, next.after)
		}
		return
	}
}

// rest takes in that the rounds of a wake are over.
func (s *jobState) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atWork = false
}

func (s *jobState) succeeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.notBefore, s.engineAway, s.lastRound = 0, time.Time{}, false, time.Now()
}

// progressed takes in that an own write took effect. If the round fails all the
// same, the next one does not wait longer for it: what is left to do gets less.
func (s *jobState) progressed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = 0
}
