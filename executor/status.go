package executor

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// writeStatus replaces the status of the version of the Job that was decided on. If the
// Job has changed since, the API server refuses the write, and the Job is decided on
// again (changedSince). It returns what is still to be announced.
func (a *applier) writeStatus(ctx context.Context, s *tracker.Job, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse) (_ tracker.StatusWrite, err error) {
	write := tracker.StatusWrite{Job: snap.job, Events: eventsOf(d, false), Actions: d.GetPodFailureActions()}
	if v := d.GetVerdict(); !v.GetRepeated() {
		write.End = v.GetEnd()
	}
	status, changed, err := wire.NextStatus(d.GetStatus(), &snap.job.Status)
	if err != nil || !changed {
		return write, err
	}
	write.Status, write.LastValid = status, snap.lastValid(&status)
	ctx, end := a.api.Tracer.Span(ctx, telemetry.SpanStatusWritten)
	defer func() { end(err) }()
	if err := a.sendStatus(ctx, s, calls, &write); err != nil {
		return write, err
	}
	if !s.Announce(&write) {
		return tracker.StatusWrite{}, nil // The watch has shown this write, and it was announced then.
	}
	a.report.statusWritten(ctx, &write)
	return write, nil
}

// sendStatus sends a status write, and records what became of it.
func (a *applier) sendStatus(ctx context.Context, s *tracker.Job, calls *api.Pods, write *tracker.StatusWrite) error {
	job := write.Result()
	s.Expect(&job.Status)
	defer s.Expect(nil)
	updated, err := a.api.UpdateStatus(ctx, &s.Refusals, job)
	switch {
	case err == nil:
		s.Answered(write)
		// If no answer came, updated was read, and the spec may have changed since the write.
		if s.Observe(updated, tracker.Written) == tracker.SpecChanged {
			calls.MarkChanged()
		}
		s.StatusWritten(a.cfg.StatusPeriod)
		calls.MarkWritten()
		return nil
	case errors.Is(err, api.ErrGone):
		return err
	case api.OutcomeUnknown(err):
		s.Unanswered(write)
		a.report.resolve(ctx, s)
		s.Mark(tracker.StaleJob)
	case apierrors.IsConflict(err):
		s.Mark(tracker.StaleJob)
		return fmt.Errorf("%w: %w", errStatusConflict, err)
	}
	return err
}

// errStatusConflict: the API server refused a status because of the Job's version.
var errStatusConflict = errors.New("conflict")

// maxConflicts is how many conflicts in a row are followed by a decision at once.
const maxConflicts = 3

// changedSince is called after a conflict. It reads the Job, because the cache may not have the
// version that caused the conflict. api.ErrChanged: somebody has changed the Job since the
// decision, so another decision is due at once. If nobody has, the conflict has another
// cause, such as an admission webhook, and if there were too many in a row, others write all the
// time: then it is an error like any other (invariant I11).
func (r *reconciler) changedSince(ctx context.Context, s *tracker.Job, decidedOn *batchv1.Job, conflict error) error {
	if s.StatusConflict() > maxConflicts {
		return conflict
	}
	live, err := r.readJob(ctx, s, decidedOn)
	switch {
	case err != nil:
		return err
	case live.ResourceVersion == decidedOn.ResourceVersion:
		return conflict
	}
	return fmt.Errorf("%w: %w", api.ErrChanged, conflict)
}
