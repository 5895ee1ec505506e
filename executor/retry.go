package executor

import (
	"context"
	"log/slog"
	"time"

	"jobpolicy.dev/executor/telemetry"
)

// backOff makes the Job due again after a delay that grows with each round that
// failed and changed nothing. It has nothing to do with the delay after failed pods, which is the
// engine's.
func (e *Executor) backOff(ctx context.Context, s *jobState, err error) {
	s.mu.Lock()
	delay := exponential(e.cfg.APIBackoff, e.cfg.MaxAPIBackoff, s.failures)
	if asksForSlowRetry(err) {
		delay = e.cfg.MaxAPIBackoff
	}
	s.failures++
	now := time.Now()
	s.notBefore, s.lastRound = now.Add(delay), now
	s.planned = s.notBefore
	job := s.job
	s.mu.Unlock()
	e.queue.AddAfter(s.uid, delay)
	if job == nil || !worthLogging(err) {
		return
	}
	e.log.WarnContext(ctx, "round stopped", append(telemetry.JobAttrs(job), slog.Duration("retryAfter", delay), slog.Any("error", err))...)
}

// awaitEngine marks the Job as waiting for the engine to come back.
func (s *jobState) awaitEngine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engineAway = true
}

// retryNow ends the back-off after failed rounds.
func (s *jobState) retryNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endBackOff()
}

// engineBack ends a back-off of which the engine's absence was the cause, and
// reports whether there was one. It does so once in a period: there may be a Job
// that the engine never answers about, and each answer about another one looks as
// if the engine had come back.
func (s *jobState) engineBack(period time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.notBefore.IsZero() || !s.engineAway || now.Sub(s.retriedEarly) < period {
		return false
	}
	s.retriedEarly = now
	s.endBackOff()
	return true
}

// endBackOff needs s.mu.
func (s *jobState) endBackOff() { s.notBefore, s.failures, s.engineAway = time.Time{}, 0, false }

// exponential is base doubled n times, at most limit.
func exponential(base, limit time.Duration, n int) time.Duration {
	for range n {
		if base >= limit/2 {
			return limit
		}
		base *= 2
	}
	return min(base, limit)
}
