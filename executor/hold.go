package executor

import (
	"context"
	"log/slog"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
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
		e.log.WarnContext(ctx, what, append(telemetry.JobAttrs(job), slog.Duration("retryAfter", delay), slog.Any("error", err))...)
	}
}

// holdRelease keeps a pod from being released for a while, longer each time, because
// its finalizer was put back. The Job's other pods do not wait for it.
func (e *Executor) holdRelease(ctx context.Context, s *jobState, pod *podcache.Pod) {
	s.mu.Lock()
	h := s.releaseHolds[pod.UID]
	delay := h.begin(e.cfg.APIBackoff, e.cfg.MaxAPIBackoff)
	if s.releaseHolds == nil {
		s.releaseHolds = map[types.UID]hold{}
	}
	s.releaseHolds[pod.UID] = h
	job := s.job
	s.mu.Unlock()
	e.queue.AddAfter(s.uid, delay)
	if job != nil {
		e.log.WarnContext(ctx, "pod keeps its finalizer although it was removed: an admission webhook may put it back",
			append(telemetry.JobAttrs(job), slog.String("pod", pod.Name), slog.Duration("retryAfter", delay))...)
	}
}

// releaseHeld reports whether the pod is not to be released now.
func (s *jobState) releaseHeld(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.releaseHolds[uid].notBefore)
}

// releasable returns how many of the pods are not kept from being released, and in
// how long the first of the others is tried again; 0 if there are no others.
func (s *jobState) releasable(uids [][]byte) (n int, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetReleased()
	for _, b := range uids {
		uid, _ := wire.UIDString(b) // The answer was checked.
		wait := time.Until(s.releaseHolds[uid].notBefore)
		if wait <= 0 {
			n++
			continue
		}
		if next == 0 || wait < next {
			next = wait
		}
	}
	return n, next
}

// forgetReleased ends the holds of pods that do not hold the finalizer any more.
// s.mu must be held.
func (s *jobState) forgetReleased() {
	maps.DeleteFunc(s.releaseHolds, func(uid types.UID, _ hold) bool {
		pod, known := s.pods.Pod(uid)
		return !known || !pod.HasTrackingFinalizer
	})
}

// endHold ends one of the Job's holds: some of it was done after all, or, of
// creation, a pod has ended and made room for another.
func (s *jobState) endHold(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*h = hold{}
}
