package executor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// deletePods deletes pods. One that cannot be deleted does not keep the others
// from it.
func (e *Executor) deletePods(ctx context.Context, s *jobState, calls *api.Pods, job *batchv1.Job, deletes []*jobpolicyv1.DeletePod) error {
	var some atomic.Bool
	err := s.deleting.Do(ctx, len(deletes), func(ctx context.Context, i int) error {
		err := deletePod(ctx, calls, job, deletes[i])
		if err == nil {
			some.Store(true)
		}
		return err
	})
	if some.Load() {
		s.endHold(&s.deleteHold)
	}
	return err
}

func deletePod(ctx context.Context, calls *api.Pods, job *batchv1.Job, d *jobpolicyv1.DeletePod) error {
	uid, err := wire.UIDString(d.GetUid())
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return calls.Delete(ctx, job, uid, d.GetReleaseFirst())
}

// releasePods removes the tracking finalizer from the pods. What the API server
// confirms is confirmed in the next snapshot. A pod whose finalizer is put back does
// not keep the others from being released, and is tried again later.
func (e *Executor) releasePods(ctx context.Context, s *jobState, calls *api.Pods, uids [][]byte) error {
	return s.patching.Do(ctx, len(uids), func(ctx context.Context, i int) error {
		uid, err := wire.UIDString(uids[i])
		if err != nil {
			return fmt.Errorf("release: %w", err)
		}
		pod, known := s.pods.Pod(uid)
		if !known {
			return nil
		}
		return e.releasePod(ctx, s, calls, pod)
	})
}

// releasePod releases a pod, unless its release is backing off.
func (e *Executor) releasePod(ctx context.Context, s *jobState, calls *api.Pods, pod *podcache.Pod) error {
	if !pod.HasTrackingFinalizer || s.releaseHeld(pod.UID) {
		return nil
	}
	err := calls.Release(ctx, pod)
	if errors.Is(err, api.ErrPutBack) {
		e.holdRelease(ctx, s, pod)
		return nil
	}
	return err
}
