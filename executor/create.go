package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/gang"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// createPods creates pods, as members of the PodGroup if one is named. It starts with one
// pod and stops at the first failure, so that an exhausted quota does not make a thousand
// calls fail. Pods that admission has changed are deleted, and no other pod is created before that.
func (a *applier) createPods(ctx context.Context, s *tracker.Job, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse, podGroup string) error {
	creates := d.GetCreate().GetCount() > 0
	if creates || time.Now().After(s.StepWaitsUntil(tracker.Create)) {
		if err := a.deleteAltered(ctx, s, calls, snap.job); err != nil {
			return err
		}
	}
	if !creates {
		return nil
	}
	job := gang.InPodGroup(newest(s, snap), podGroup)
	pods := wire.NewPods(job, snap.req.GetSpec().GetOptions(), d.GetCreate())
	reason := creationReason(job, d.GetCreate(), snap.req.GetPods().GetTerminating())
	err := s.Writes.Create.Do(ctx, len(pods), func(ctx context.Context, i int) error {
		if _, stands := a.cfg.standstill(s); stands {
			return errUnseen
		}
		err := calls.Create(ctx, job, pods[i].From(job), pods[i].Index)
		switch {
		case err == nil:
			s.StepMayGoOn(tracker.Create)
		case errors.Is(err, api.ErrNamespaceTerminating):
			s.Mark(tracker.NamespaceTerminating)
		}
		a.report.creation(reason, err)
		return err
	})
	if err == nil {
		return nil
	}
	if left := a.deleteAltered(ctx, s, calls, snap.job); left != nil {
		return fmt.Errorf("%w; %w", err, left)
	}
	return err
}

// deleteAltered deletes the pods that admission changed when they were created.
func (a *applier) deleteAltered(ctx context.Context, s *tracker.Job, calls *api.Pods, job *batchv1.Job) error {
	pods := s.AlteredPods()
	err := s.Writes.Delete.Do(ctx, len(pods), func(ctx context.Context, i int) error {
		return calls.DeleteAltered(ctx, job, pods[i])
	})
	if err != nil {
		return fmt.Errorf("deleting pods that admission has changed: %w", err)
	}
	return nil
}

// newest returns the newest known version of the Job. Its pod template may have changed
// since the decision.
func newest(s *tracker.Job, snap snapshot) *batchv1.Job {
	if job := s.Current(); job != nil {
		return job
	}
	return snap.job
}
