package executor

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/gang"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// createPods creates pods, as members of the PodGroup if one is named. It starts with one
// pod and stops at the first failure, so that an exhausted quota does not make a thousand
// calls fail.
func (a *applier) createPods(ctx context.Context, s *state.Job, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse, podGroup string) error {
	if d.GetCreate().GetCount() == 0 {
		return nil
	}
	job := gang.InPodGroup(newest(s, snap), podGroup)
	pods := wire.NewPods(job, d.GetCreate())
	reason := creationReason(job, d.GetCreate(), snap.req.GetPods().GetTerminating())
	return s.Writes.Create.Do(ctx, len(pods), func(ctx context.Context, i int) error {
		err := calls.Create(ctx, job, pods[i].From(job), pods[i].Index)
		switch {
		case err == nil:
			s.Backoffs.Reset(state.Create)
		case errors.Is(err, api.ErrNamespaceTerminating):
			s.Version.Mark(state.NamespaceTerminating)
		}
		a.report.creation(reason, err)
		return err
	})
}

// newest returns the newest known version of the Job. Its pod template may have changed
// since the decision.
func newest(s *state.Job, snap snapshot) *batchv1.Job {
	if job := s.Version.Current(); job != nil {
		return job
	}
	return snap.job
}
