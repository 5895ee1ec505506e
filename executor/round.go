package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// missedEvent is when a Job is looked at again after a round that changed
// something, if no event comes.
const missedEvent = 10 * time.Second

// next says when a Job wants its next round if no event comes before.
type next struct {
	// again: at once. after: then; 0 means only when something changes.
	again bool
	after time.Duration
}

// round runs one pass over a Job: bring the view up to date, ask, apply. An
// error means that the pass stopped where it occurred.
func (e *Executor) round(ctx context.Context, s *jobState, calls *api.Pods) (next, error) {
	job := s.current()
	if !e.inCare(job) {
		return next{}, nil
	}
	if !wire.KnownCompletionMode(job) {
		e.recorder.Event(job, corev1.EventTypeWarning, "UnknownCompletionMode", "Skipped Job sync because completion mode is unknown")
		return next{}, nil
	}
	started := time.Now()
	ctx, span := e.tracer.Start(ctx, telemetry.SpanRoundRun)
	defer span.End()
	action, n, err := e.pass(ctx, s, calls)
	if errors.Is(err, api.ErrJobGone) {
		return next{}, nil
	}
	result := resultSuccess
	if err != nil && !errors.Is(err, api.ErrNamespaceTerminating) {
		result = resultError
		span.SetStatus(codes.Error, err.Error())
	}
	if action != noAction {
		e.metrics.syncDuration.WithLabelValues(completionModeLabel(job), result, action).Observe(time.Since(started).Seconds())
		e.metrics.syncs.WithLabelValues(completionModeLabel(job), result, action).Inc()
	}
	if heldBack(err) {
		return n, nil // What else there is to do is not.
	}
	return n, err
}

// heldBack reports whether a round stopped because of what is held back from now
// on.
func heldBack(err error) bool { return errors.Is(err, errCreation) || errors.Is(err, errDeletion) }

// noAction is that of a pass which ends before anything is decided: there is no
// Job to care for any more, or the view is stale. It is no sync.
const noAction = ""

func (e *Executor) pass(ctx context.Context, s *jobState, calls *api.Pods) (action string, n next, err error) {
	snap, decision, err := e.judge(ctx, s, calls)
	switch {
	case errors.Is(err, errOverdue):
		return noAction, next{again: true}, nil
	case err != nil:
		return actionReconciling, next{}, err
	case decision == nil:
		return noAction, next{}, nil
	}
	describeDecision(trace.SpanFromContext(ctx), decision)
	e.remember(ctx, s, snap, decision)
	n, err = e.carryOut(ctx, s, calls, snap, decision)
	return actionOf(decision), n, err
}

func actionOf(d *jobpolicyv1.DecideJobResponse) string {
	switch {
	case d.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_WAIT:
		return noAction
	case d.GetCreate() != nil:
		return actionCreated
	case len(d.GetDelete()) > 0:
		return actionDeleted
	default:
		return actionTracking
	}
}

// judge brings the view up to date and asks. decision is nil when there is no Job
// of ours left to decide on. Pods are claimed without one of the worker slots: a
// webhook that hangs on the pods of one namespace must not keep the others' Jobs
// from being judged.
func (e *Executor) judge(ctx context.Context, s *jobState, calls *api.Pods) (snap snapshot, d *jobpolicyv1.DecideJobResponse, err error) {
	if err := e.inSlot(ctx, func() error { return e.refresh(ctx, s, calls) }); err != nil {
		return snapshot{}, nil, err
	}
	job := s.current()
	if !e.inCare(job) {
		return snapshot{}, nil, nil
	}
	if err := e.claim(ctx, s, calls, job); err != nil {
		return snapshot{}, nil, fmt.Errorf("claiming pods: %w", err)
	}
	err = e.inSlot(ctx, func() error {
		snap, d, err = e.decide(ctx, s)
		return err
	})
	return snap, d, err
}

// inSlot calls f in one of the worker slots.
func (e *Executor) inSlot(ctx context.Context, f func() error) error {
	select {
	case e.judging <- struct{}{}:
		defer func() { <-e.judging }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// decide asks, and asks once more if the engine wants rows of active pods.
func (e *Executor) decide(ctx context.Context, s *jobState) (snapshot, *jobpolicyv1.DecideJobResponse, error) {
	snap, err := e.currentSnapshot(s, false)
	if err != nil {
		return snapshot{}, nil, err
	}
	decision, err := e.ask(ctx, s, snap)
	if err != nil {
		return snapshot{}, nil, err
	}
	if decision.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		return snap, decision, nil
	}
	if snap, err = e.currentSnapshot(s, true); err != nil {
		return snapshot{}, nil, err
	}
	if decision, err = e.ask(ctx, s, snap); err != nil {
		return snapshot{}, nil, err
	}
	if decision.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		return snapshot{}, nil, fmt.Errorf("requirements %v were met and are asked for again: %w", decision.GetRequirements(), errBadAnswer)
	}
	return snap, decision, nil
}

// carryOut does what a decision says, and works out when to look again.
func (e *Executor) carryOut(ctx context.Context, s *jobState, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse) (next, error) {
	switch d.GetDisposition() {
	case jobpolicyv1.Disposition_DISPOSITION_WAIT:
		e.metrics.staleSkips.WithLabelValues(staleResource(d)...).Inc()
		s.due(false, true, false)
		after := e.cfg.APIBackoff
		if requeue := e.requeueAfter(snap, d); requeue > 0 {
			after = min(after, requeue)
		}
		return next{after: after}, nil
	case jobpolicyv1.Disposition_DISPOSITION_SETTLED:
		return next{after: e.regrowth(s, snap, e.requeueAfter(snap, d))}, nil
	}
	switch err := e.apply(ctx, s, calls, snap, d); {
	case heldBack(err):
		return next{again: true}, err
	case err != nil:
		return next{}, err
	}
	if d.GetCreate() != nil {
		s.endHold(&s.createHold)
	}
	return e.nextAfter(s, snap, d), nil
}

// nextAfter says when to ask again after a decision was carried out.
func (e *Executor) nextAfter(s *jobState, snap snapshot, d *jobpolicyv1.DecideJobResponse) next {
	releases, retry := s.releasable(d.GetRelease())
	after := missedEvent
	// A decision that changed nothing would only be made again.
	if d.GetCreate() != nil || len(d.GetDelete()) > 0 || d.GetStatus() != nil || releases > 0 {
		switch d.GetFollowUp() {
		case jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE:
			return next{again: true}
		case jobpolicyv1.FollowUp_FOLLOW_UP_WHEN_CONFIRMED:
			after = e.cfg.StatusPeriod
		}
	}
	for _, due := range []time.Duration{retry, e.requeueAfter(snap, d)} {
		if due > 0 {
			after = min(after, due)
		}
	}
	return next{after: after}
}

// staleResource is of which objects the view is too old for the engine.
func staleResource(d *jobpolicyv1.DecideJobResponse) []string {
	if slices.Contains(d.GetRequirements(), jobpolicyv1.Requirement_REQUIREMENT_CURRENT_JOB) {
		return []string{batchv1.GroupName, "jobs"}
	}
	return []string{"", "pods"}
}

// requeueAfter is how long until the decision's requeue time, as seen from the
// request whose clock it was decided by; 0 if it has none. A time that is not in
// the future counts as a batch period (invariant I11).
func (e *Executor) requeueAfter(snap snapshot, d *jobpolicyv1.DecideJobResponse) time.Duration {
	if d.GetRequeueTime() == nil {
		return 0
	}
	ahead := d.GetRequeueTime().AsTime().Sub(snap.req.GetNow().AsTime())
	return max(ahead-time.Since(snap.made), e.cfg.SyncBatchPeriod)
}

func (e *Executor) remember(ctx context.Context, s *jobState, snap snapshot, d *jobpolicyv1.DecideJobResponse) {
	explanation, err := proto.Marshal(d.GetExplanation())
	if err != nil {
		e.log.ErrorContext(ctx, "the explanation of a decision does not marshal", slog.Any("error", err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone {
		s.last = recordAfter(s.last, snap.req.GetNow().AsTime(), d.GetVerdict(), explanation)
	}
}

func worthLogging(err error) bool {
	return !errors.Is(err, api.ErrNamespaceTerminating) && !errors.Is(err, errEngine) && !errors.Is(err, context.Canceled)
}

func (e *Executor) debug(ctx context.Context, message string, job *batchv1.Job, attrs ...slog.Attr) {
	e.log.LogAttrs(ctx, slog.LevelDebug, message, append([]slog.Attr{
		slog.String("namespace", job.Namespace), slog.String("job", job.Name), slog.String("uid", string(job.UID)),
	}, attrs...)...)
}
