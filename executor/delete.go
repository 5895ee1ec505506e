package executor

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// deletePods deletes pods. If one cannot be deleted, the others still are.
func (a *applier) deletePods(ctx context.Context, s *tracker.Job, calls *api.Pods, job *batchv1.Job, deletes []*jobpolicyv1.DeletePod) error {
	return s.Writes.Delete.Do(ctx, len(deletes), func(ctx context.Context, i int) error {
		err := deletePod(ctx, calls, job, deletes[i])
		switch {
		case err == nil:
			s.StepMayGoOn(tracker.Delete)
		case errors.Is(err, api.ErrPodEnded), errors.Is(err, api.ErrPodStarted):
			// The cache is behind. Another pod may have failed before this one ended, and
			// that may decide how the Job ends.
			s.Mark(tracker.StalePods)
		}
		return err
	})
}

// deleteFinished deletes finished pods. If one cannot be deleted, the others still are. Only a round without a failure
// ends the delay: pods go on finishing, and deletions that succeed say nothing about one that is refused each time.
func (a *applier) deleteFinished(ctx context.Context, s *tracker.Job, calls *api.Pods, job *batchv1.Job, uids [][]byte) error {
	err := s.Writes.Delete.Do(ctx, len(uids), func(ctx context.Context, i int) error {
		uid, err := wire.UIDString(uids[i])
		if err != nil {
			return fmt.Errorf("delete_finished: %w", err)
		}
		return calls.DeleteFinished(ctx, job, uid)
	})
	if err == nil && len(uids) > 0 {
		s.StepMayGoOn(tracker.DeleteFinished)
	}
	return err
}

func deletePod(ctx context.Context, calls *api.Pods, job *batchv1.Job, d *jobpolicyv1.DeletePod) error {
	uid, err := wire.UIDString(d.GetUid())
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return calls.Delete(ctx, job, uid, d)
}

// endPods has pods ended by their nodes. If one cannot be, the others still are.
func (a *applier) endPods(ctx context.Context, s *tracker.Job, calls *api.Pods, ends []*jobpolicyv1.EndPod) error {
	return s.Writes.Patch.Do(ctx, len(ends), func(ctx context.Context, i int) error {
		uid, err := wire.UIDString(ends[i].GetUid())
		if err != nil {
			return fmt.Errorf("end: %w", err)
		}
		if err = calls.End(ctx, uid, ends[i]); err == nil {
			s.StepMayGoOn(tracker.Delete)
		}
		return err
	})
}
