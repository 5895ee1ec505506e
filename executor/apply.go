package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/gang"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var (
	// errCreation: not all pods were created, and creation is backing off.
	errCreation = errors.New("pods not created")
	// errDeletion: not all pods were deleted, and deletion is backing off.
	errDeletion = errors.New("pods not deleted")
)

// applier carries out decisions.
type applier struct {
	base    *controller.Controller
	cfg     *Config
	api     *api.Client
	gangs   *gang.Gangs
	metrics *jobMetrics
	report  *reporter
}

// apply carries out a decision in the contract's order: gang, create or delete, status,
// release, events. It stops at the first step that does not succeed in full. The next
// snapshot contains what succeeded.
func (a *applier) apply(ctx context.Context, s *state.Job, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse) error {
	podGroup, err := a.gangs.Ensure(ctx, snap.job, d.GetGang())
	if err != nil && d.GetGang().GetMayBegin() {
		// A status would say that the Job has begun. After that, its gang could not be
		// created any more.
		return fmt.Errorf("gang: %w", err)
	}
	if err == nil {
		err = a.createPods(ctx, s, calls, snap, d, podGroup)
	}
	if err != nil {
		a.stepFailed(ctx, s, state.Create, snap.job, "pods not created", err)
		return fmt.Errorf("%w: %w", errCreation, err)
	}
	if err := a.deletePods(ctx, s, calls, snap.job, d.GetDelete()); err != nil {
		a.stepFailed(ctx, s, state.Delete, snap.job, "pods not deleted", err)
		return fmt.Errorf("%w: %w", errDeletion, err)
	}
	write, err := a.writeStatus(ctx, s, calls, snap, d)
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	a.report.actions(write.Actions)
	began := time.Now()
	err = a.releasePods(ctx, s, calls, d.GetRelease())
	if d.GetStatus() != nil && len(d.GetRelease()) > a.cfg.Writes.PerJob {
		s.Statuses.Postpone(time.Since(began))
	}
	if err != nil {
		// The status is written, so no later decision has these events again.
		a.base.RecordEvents(snap.job, write.Events)
		return fmt.Errorf("releasing finalizers: %w", err)
	}
	a.base.RecordEvents(snap.job, write.Events)
	return nil
}

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
	if err := a.updateStatus(ctx, s, calls, &write); err != nil {
		return write, err
	}
	if !s.Unanswered.Announce(&write) {
		return state.StatusWrite{}, nil // The watch has shown this write, and it was announced then.
	}
	a.report.written(ctx, &write)
	return write, nil
}

func (a *applier) updateStatus(ctx context.Context, s *state.Job, calls *api.Pods, write *state.StatusWrite) error {
	job := write.Written()
	s.Version.Expect(&job.Status)
	defer s.Version.Expect(nil)
	updated, err := a.api.UpdateStatus(ctx, job)
	switch {
	case err == nil:
		s.Unanswered.Answered(write)
		s.Observe(updated, state.Written)
		s.Statuses.Written(a.cfg.StatusPeriod)
		calls.MarkWritten()
		return nil
	case errors.Is(err, api.ErrGone):
		return err
	case api.OutcomeUnknown(err):
		s.Unanswered.Add(write)
		a.report.settle(ctx, s)
		s.Version.Mark(state.StaleJob)
	case apierrors.IsConflict(err):
		// Read the Job before the next decision: the cache may not have the version that
		// caused the conflict.
		s.Version.Mark(state.StaleJob)
	}
	return err
}

// stepFailed starts the backoff of a step. The other steps of the Job go on.
func (a *applier) stepFailed(ctx context.Context, s *state.Job, step state.Step, job *batchv1.Job, what string, err error) {
	delay := s.Backoffs.Failed(step, a.base.BackoffLimits())
	if !errors.Is(err, api.ErrNamespaceTerminating) && !errors.Is(err, context.Canceled) {
		if step == state.Create {
			s.Backoffs.Refused(state.Refusal{At: time.Now(), Why: err.Error()})
		}
		a.cfg.Logger.WarnContext(ctx, what, append(telemetry.JobAttrs(job), slog.Duration("retryAfter", delay), slog.Any("error", err))...)
	}
}
