package executor

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// writeStatus replaces the status of the version of the Job that was decided on. If the
// Job has changed since, the API server refuses the write, and the Job is decided on
// again. It returns what is still to be announced.
func (a *applier) writeStatus(ctx context.Context, s *state.Job, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse) (_ state.StatusWrite, err error) {
	write := state.StatusWrite{Job: snap.job, Events: d.GetEvents(), Actions: d.GetPodFailureActions()}
	if d.GetStatus() == nil {
		return write, nil
	}
	status, err := wire.APIStatus(d.GetStatus())
	if err != nil {
		return write, err
	}
	wire.KeepUndecided(&status, &snap.job.Status)
	if wire.SameStatus(&status, &snap.job.Status) {
		return write, nil
	}
	write.Status = status
	ctx, end := a.api.Tracer.Span(ctx, telemetry.SpanStatusWritten)
	defer func() { end(err) }()
	if err := a.sendStatus(ctx, s, calls, &write); err != nil {
		return write, err
	}
	if !s.Unanswered.Announce(&write) {
		return state.StatusWrite{}, nil // The watch has shown this write, and it was announced then.
	}
	a.report.statusWritten(ctx, &write)
	return write, nil
}

// sendStatus sends a status write, and records what became of it.
func (a *applier) sendStatus(ctx context.Context, s *state.Job, calls *api.Pods, write *state.StatusWrite) error {
	job := write.Result()
	s.Version.Expect(&job.Status)
	defer s.Version.Expect(nil)
	updated, err := a.api.UpdateStatus(ctx, &s.Refusals, job)
	switch {
	case err == nil:
		s.Unanswered.Answered(write)
		// If no answer came, updated was read, and the spec may have changed since the write.
		if s.Observe(updated, state.Written) == state.SpecChanged {
			calls.MarkChanged()
		}
		s.Statuses.Reschedule(a.cfg.StatusPeriod)
		calls.MarkWritten()
		return nil
	case errors.Is(err, api.ErrGone):
		return err
	case api.OutcomeUnknown(err):
		s.Unanswered.Add(write)
		a.report.resolve(ctx, s)
		s.Version.Mark(state.StaleJob)
	case apierrors.IsConflict(err):
		// Read the Job before the next decision: the cache may not have the version that
		// caused the conflict.
		s.Version.Mark(state.StaleJob)
	}
	return err
}
