package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
)

// reconciler brings what is known of a Job up to date, asks for a decision, and has it
// applied.
type reconciler struct {
	cfg     *Config
	scope   controller.Scope
	jobs    *tracker.Jobs
	api     *api.Client
	calls   func(*tracker.Job) *api.Pods
	writes  *limit.Pool
	decider *decider
	applier *applier
	report  *reporter
	second  *secondController
	// podWatch has the pod cache, and knows whether it was filled before this process led.
	podWatch *podWatch
}

// Reconcile is the reconcile function of the queue. It ends the span, counts the reconcile,
// and says when the next one is due.
func (r *reconciler) Reconcile(ctx context.Context, key tracker.Key) (controller.Result, error) {
	s, ok := r.jobs.Find(key)
	if !ok {
		return controller.Result{}, nil
	}
	job := s.Current()
	if !r.scope.Reconciles(job) {
		return controller.Result{}, nil
	}
	if wait := r.second.StandDown(key.UID); wait > 0 {
		return controller.Result{RequeueAfter: wait}, nil
	}
	if !wire.KnownCompletionMode(job) {
		r.report.base.Recorder.Event(job, corev1.EventTypeWarning, "UnknownCompletionMode", "Skipped Job sync because completion mode is unknown")
		return controller.Result{}, nil
	}
	r.writes.Active(key.UID)
	ctx, end := r.report.base.RootSpan(ctx, telemetry.SpanJobReconciled,
		telemetry.AttrNamespace.String(job.Namespace), telemetry.AttrJobName.String(job.Name), telemetry.AttrJobUID.String(string(key.UID)))
	started, calls := time.Now(), r.calls(s)
	action, result, err := r.reconcile(ctx, s, calls)
	if errors.Is(err, api.ErrGone) {
		s.Mark(tracker.NotFound)
		action, result, err = noAction, controller.Result{}, nil
	}
	r.report.reconciled(ctx, job, action, err, time.Since(started))
	_, isStep := errors.AsType[*stepError](err)
	switch {
	case isStep:
		err = nil // The step backs off, not the whole Job.
	case errors.Is(err, api.ErrChanged):
		result, err = controller.Result{Requeue: true}, nil
	}
	end(err)
	if err != nil {
		return controller.Result{Progressed: calls.Written()}, err // The backoff alone says when.
	}
	s.PruneRefusals()
	if calls.Changed() {
		result = sooner(result, r.cfg.SyncBatchPeriod)
	}
	if at, again := s.NextRelease(); again {
		result = soonest(result, at)
	}
	return result, nil
}

// reconcile reads what is not known for certain, asks the engine, and applies the decision.
func (r *reconciler) reconcile(ctx context.Context, s *tracker.Job, calls *api.Pods) (action string, result controller.Result, err error) {
	awaiting, err := r.refresh(ctx, s, calls)
	if err != nil {
		return actionReconciling, result, err
	}
	job := s.Current()
	if wait := r.second.StandDown(s.UID); wait > 0 || !r.scope.Reconciles(job) {
		return noAction, controller.Result{RequeueAfter: wait}, nil
	}
	if err := r.claim(ctx, s, calls, job); err != nil {
		return actionReconciling, result, fmt.Errorf("claiming pods: %w", err)
	}
	snap, d, err := r.decider.decide(ctx, s, toApply)
	switch {
	case errors.Is(err, errStale):
		r.report.skipped(s)
		return noAction, controller.Result{Requeue: true}, nil
	case err != nil:
		return actionReconciling, result, err
	case r.podWatch.mustList(s, d):
		// The pods were read before this process led: list them, and decide again.
		s.Mark(tracker.StalePods)
		r.report.skipped(s)
		return noAction, controller.Result{Requeue: true}, nil
	}
	kept, err := r.applier.keepOptions(ctx, s, calls, snap)
	switch {
	case kept:
		return actionReconciling, controller.Result{Requeue: true}, nil
	case err == nil:
		describeDecision(trace.SpanFromContext(ctx), d)
		r.report.remember(ctx, s, snap, d)
		result, err = r.applier.apply(ctx, s, calls, snap, d)
	}
	if errors.Is(err, errStatusConflict) {
		err = r.changedSince(ctx, s, snap.job, err)
	}
	controller.RecordOutcome(ctx, err)
	if awaiting {
		result = sooner(result, requeueIfNoEvent)
	}
	return syncAction(snap.req, d), result, err
}
