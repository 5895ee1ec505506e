package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var (
	// errCreation: not all pods were created. Creation is held back from now on.
	errCreation = errors.New("pods not created")
	// errDeletion: not all pods were deleted. Deletion is held back from now on.
	errDeletion = errors.New("pods not deleted")
)

// apply carries a decision out in the contract's order: gang, create or delete,
// status, release, events. It stops at the first step that does not
// succeed in full; what did succeed is part of the next snapshot.
func (e *Executor) apply(ctx context.Context, s *jobState, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse) error {
	podGroup, err := e.gangs.Ensure(ctx, snap.job, d.GetGang())
	if err != nil && d.GetGang().GetMayBegin() {
		// A status would say that the Job has begun, and its gang could not be
		// made any more.
		return fmt.Errorf("gang: %w", err)
	}
	if err == nil {
		err = e.createPods(ctx, s, calls, snap, d, podGroup)
	}
	if err != nil {
		e.holdBack(ctx, s, &s.createHold, snap.job, "pods not created", err)
		return fmt.Errorf("%w: %w", errCreation, err)
	}
	if err := e.deletePods(ctx, s, calls, snap.job, d.GetDelete()); err != nil {
		e.holdBack(ctx, s, &s.deleteHold, snap.job, "pods not deleted", err)
		return fmt.Errorf("%w: %w", errDeletion, err)
	}
	said, err := e.writeStatus(ctx, s, snap, d)
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	e.countActions(said.actions)
	begun := time.Now()
	err = e.releasePods(ctx, s, calls, d.GetRelease())
	if d.GetStatus() != nil && len(d.GetRelease()) > e.cfg.MaxJobWrites {
		s.postponeStatus(time.Since(begun))
	}
	if err != nil {
		// The status is written and will not be decided on again: its events go
		// out now or never.
		e.recordEvents(snap.job, said.events)
		return fmt.Errorf("releasing finalizers: %w", err)
	}
	e.recordEvents(snap.job, said.events)
	return nil
}

// writeStatus replaces the status of the very version of the Job that was
// judged: if anything has changed since, the API server refuses, and the Job is
// judged again. It returns what is left to be told.
func (e *Executor) writeStatus(ctx context.Context, s *jobState, snap snapshot, d *jobpolicyv1.DecideJobResponse) (_ announcement, err error) {
	said := announcement{job: snap.job, events: d.GetEvents(), actions: d.GetPodFailureActions()}
	if d.GetStatus() == nil {
		return said, nil
	}
	status, err := wire.APIStatus(d.GetStatus())
	if err != nil {
		return said, err
	}
	wire.KeepUndecided(&status, &snap.job.Status)
	if api.SameStatus(&status, &snap.job.Status) {
		return said, nil
	}
	said.status = status
	ctx, end := e.tracer.Span(ctx, telemetry.SpanStatusWritten)
	defer func() { end(err) }()
	if err := e.updateStatus(ctx, s, &said); err != nil {
		return said, err
	}
	if !s.tell(&said) {
		return announcement{}, nil // The watch has shown the write before its answer came.
	}
	e.countWritten(ctx, &said)
	return said, nil
}

func (e *Executor) updateStatus(ctx context.Context, s *jobState, said *announcement) error {
	job := said.written()
	s.expect(&job.Status)
	defer s.expect(nil)
	updated, err := e.api.UpdateStatus(ctx, job)
	switch {
	case err == nil:
		s.answered(said)
		s.observe(updated, jobWritten)
		s.spaceStatuses(e.cfg.StatusPeriod)
		s.progressed()
		return nil
	case errors.Is(err, api.ErrJobGone):
		return err
	case api.OutcomeUnknown(err):
		s.answerMissing(said)
		e.settleUnanswered(ctx, s)
		s.due(false, true, false)
	case apierrors.IsConflict(err):
		// Read the Job before deciding again: the cache may be behind what is in
		// the way.
		s.due(false, true, false)
	}
	return err
}

func (s *jobState) expect(status *batchv1.JobStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = status
}
