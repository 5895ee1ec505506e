package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
)

// releasePods removes the tracking finalizer from the pods. The next snapshot confirms
// the releases that the API server has confirmed. If a pod's finalizer is put back, the
// others are still released, and that pod is tried again later.
func (a *applier) releasePods(ctx context.Context, s *state.Job, calls *api.Pods, uids [][]byte) error {
	return s.Writes.Patch.Do(ctx, len(uids), func(ctx context.Context, i int) error {
		uid, err := wire.UIDString(uids[i])
		if err != nil {
			return fmt.Errorf("release: %w", err)
		}
		pod, known := s.Pods.Pod(uid)
		if !known {
			return nil
		}
		return a.releasePod(ctx, s, calls, pod)
	})
}

// releasePod releases a pod, unless its release is backing off.
func (a *applier) releasePod(ctx context.Context, s *state.Job, calls *api.Pods, pod *podcache.Pod) error {
	if !pod.HasTrackingFinalizer || !s.Backoffs.Releasing(pod.UID) {
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
func (a *applier) releaseFailed(ctx context.Context, s *state.Job, pod *podcache.Pod) {
	delay := s.Backoffs.ReleaseFailed(pod.UID, a.base.BackoffLimits())
	if job := s.Version.Current(); job != nil {
		a.cfg.Logger.WarnContext(ctx, "pod keeps its finalizer although it was removed: an admission webhook may put it back",
			append(telemetry.JobAttrs(job), slog.String("pod", pod.Name), slog.Duration("retryAfter", delay))...)
	}
}
