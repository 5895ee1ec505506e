package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
)

// releasePods removes the tracking finalizer from the pods. The next request tells the engine
// which releases the API server has confirmed. If somebody puts a pod's finalizer back, or the
// API server refuses to release a pod, the others are still released, and that pod is tried
// again later.
func (a *applier) releasePods(ctx context.Context, s *tracker.Job, calls *api.Pods, uids [][]byte) error {
	return a.patchPods(ctx, s, len(uids), func(ctx context.Context, i int) (*podcache.Pod, error) {
		uid, err := wire.UIDString(uids[i])
		if err != nil {
			return nil, fmt.Errorf("release: %w", err)
		}
		pod, known := s.Pod(uid)
		if !known {
			return nil, nil
		}
		return pod, a.releasePod(ctx, s, calls, pod)
	})
}

// releasePod releases a pod, unless its release is backing off.
func (a *applier) releasePod(ctx context.Context, s *tracker.Job, calls *api.Pods, pod *podcache.Pod) error {
	if !pod.HasTrackingFinalizer || !s.MayRelease(pod.UID) {
		return nil
	}
	err := calls.Release(ctx, pod)
	if errors.Is(err, api.ErrPutBack) {
		a.releaseFailed(ctx, s, pod)
		return nil
	}
	return err
}

// releaseFailed starts the backoff of a pod's release after its finalizer was put back.
// The Job's other pods do not wait for it.
func (a *applier) releaseFailed(ctx context.Context, s *tracker.Job, pod *podcache.Pod) {
	delay := s.ReleaseFailed(pod.UID, a.base.BackoffLimits())
	if job := s.Current(); job != nil {
		a.cfg.Logger.WarnContext(ctx, "pod keeps its finalizer although it was removed: an admission webhook may put it back",
			append(telemetry.JobAttrs(job), slog.String("pod", pod.Name), slog.Duration("retryAfter", delay))...)
	}
}

// patchPods patches n pods. patch patches one of them and returns it. If the API server refuses
// a patch, only that pod backs off, because a policy may forbid the patch for that pod alone. If
// nothing else has failed, patchPods then returns a stepError.
func (a *applier) patchPods(ctx context.Context, s *tracker.Job, n int, patch func(ctx context.Context, i int) (*podcache.Pod, error)) error {
	var refused refusals
	err := s.Writes.Patch.Do(ctx, n, func(ctx context.Context, i int) error {
		pod, err := patch(ctx, i)
		if pod != nil && api.Refused(err) {
			refused.add(s.ReleaseFailed(pod.UID, a.base.BackoffLimits()), err)
			return nil
		}
		return err
	})
	if refused.pods == 0 {
		return err
	}
	if job := s.Current(); job != nil {
		a.cfg.Logger.WarnContext(ctx, "finalizers of pods not removed", append(telemetry.JobAttrs(job),
			slog.Int("pods", refused.pods), slog.Duration("retryAfter", refused.retryAfter), slog.Any("error", refused.cause))...)
	}
	if err == nil {
		err = &stepError{notReleased, fmt.Errorf("%d refused, one of them: %w", refused.pods, refused.cause)}
	}
	return err
}

// refusals are the patches of pods that the API server has refused.
type refusals struct {
	mu   sync.Mutex
	pods int
	// cause is the refusal of one of them.
	cause error
	// retryAfter is the shortest delay.
	retryAfter time.Duration
}

func (r *refusals) add(retryAfter time.Duration, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods == 0 || retryAfter < r.retryAfter {
		r.cause, r.retryAfter = cause, retryAfter
	}
	r.pods++
}
