package executor

import (
	"context"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// A hold keeps one kind of change from being tried for a while, because it has
// just failed. The next round does what is left to do: finished pods are counted
// and released however long a quota stays exhausted or a webhook refuses.
type hold struct {
	notBefore time.Time
	failures  int // In a row.
}

// begin holds back, longer with each failure in a row, and says how long.
func (h *hold) begin(base, most time.Duration) time.Duration {
	delay := exponential(base, most, h.failures)
	h.failures++
	h.notBefore = time.Now().Add(delay)
	return delay
}

// holdBack begins one of the Job's holds; what says in the log what was not done.
func (e *Executor) holdBack(ctx context.Context, s *jobState, h *hold, job *batchv1.Job, what string, err error) {
	s.mu.Lock()
	delay := h.begin(e.cfg.APIBackoff, e.cfg.MaxAPIBackoff)
	s.mu.Unlock()
	if worthLogging(err) {
		e.log.WarnContext(ctx, what, append(jobAttrs(job), slog.Duration("retryAfter", delay), slog.Any("error", err))...)
	}
}

// endHold ends one of the Job's holds: some of it was done after all, or, of
// creation, a pod has ended and made room for another.
func (s *jobState) endHold(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*h = hold{}
}
