package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/limit"
	"jobpolicy.dev/executor/secondcontroller"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// missedEvent is when a Job is reconciled again after a decision was applied, if no event
// comes.
const missedEvent = 10 * time.Second

// reconciler brings what is known of a Job up to date, asks for a decision, and has it
// applied.
type reconciler struct {
	cfg     *Config
	scope   state.Scope
	jobs    *state.Jobs
	queue   jobQueue
	api     *api.Client
	calls   func(*state.Job) *api.Pods
	writes  *limit.Pool
	decider *decider
	applier *applier
	report  *reporter
	second  *secondcontroller.Detector
	// podWatch has the pod cache, and knows whether it was filled before this process led.
	podWatch *podWatch
}

// Reconcile reconciles a Job once.
func (r *reconciler) Reconcile(ctx context.Context, uid types.UID) (controller.Result, error) {
	s, ok := r.jobs.Find(uid)
	if !ok {
		return controller.Result{}, nil
	}
	job := s.Version.Current()
	if !r.scope.Reconciles(job) {
		return controller.Result{}, nil
	}
	if wait := r.second.StandDown(uid); wait > 0 {
		return controller.Result{RequeueAfter: wait}, nil
	}
	if !wire.KnownCompletionMode(job) {
		r.report.base.Recorder.Event(job, corev1.EventTypeWarning, "UnknownCompletionMode", "Skipped Job sync because completion mode is unknown")
		return controller.Result{}, nil
	}
	r.writes.Active(uid)
	ctx, end := r.report.base.RootSpan(ctx, telemetry.SpanJobReconciled,
		telemetry.AttrNamespace.String(job.Namespace), telemetry.AttrJobName.String(job.Name), telemetry.AttrJobUID.String(string(uid)))
	calls := r.calls(s)
	result, err := r.measured(ctx, s, calls, job)
	end(err)
	if calls.Written() {
		r.queue.Progressed(uid) // The next failure is a first one, with the shortest delay.
	}
	if calls.Observed() {
		r.queue.enqueue(s, causePod, controller.PriorityNormal)
	}
	if wait := s.Backoffs.NextRelease(s.Pods); wait > 0 {
		result = sooner(result, wait)
	}
	return result, err
}

// sooner is the result with a requeue after the delay at the latest.
func sooner(result controller.Result, delay time.Duration) controller.Result {
	if result.RequeueAfter == 0 || delay < result.RequeueAfter {
		result.RequeueAfter = delay
	}
	return result
}

// measured is reconcile with metrics. It returns no error for a Job that is gone, or if
// only one step backs off.
func (r *reconciler) measured(ctx context.Context, s *state.Job, calls *api.Pods, job *batchv1.Job) (controller.Result, error) {
	started := time.Now()
	action, result, err := r.reconcile(ctx, s, calls)
	if errors.Is(err, api.ErrGone) {
		return controller.Result{}, nil
	}
	r.report.reconciled(ctx, job, action, err, time.Since(started))
	if stepFailed(err) {
		return result, nil // Only create or delete backs off, not the whole Job.
	}
	return result, err
}

// stepFailed reports whether a reconcile stopped because of a step that backs off now.
func stepFailed(err error) bool { return errors.Is(err, errCreation) || errors.Is(err, errDeletion) }

// reconcile reads what is not known for certain, asks the engine, and applies the decision.
func (r *reconciler) reconcile(ctx context.Context, s *state.Job, calls *api.Pods) (action string, result controller.Result, err error) {
	more, err := r.refresh(ctx, s, calls)
	if err != nil {
		return actionReconciling, result, err
	}
	job := s.Version.Current()
	if wait := r.second.StandDown(s.UID); wait > 0 || !r.scope.Reconciles(job) {
		return noAction, controller.Result{RequeueAfter: wait}, nil
	}
	if err := r.claim(ctx, s, calls, job); err != nil {
		return actionReconciling, result, fmt.Errorf("claiming pods: %w", err)
	}
	snap, d, err := r.decider.decide(ctx, s)
	switch {
	case errors.Is(err, errOverdue):
		return noAction, controller.Result{Requeue: true}, nil
	case err != nil:
		return actionReconciling, result, err
	case r.podWatch.mustList(s, d):
		s.Version.Mark(state.StalePods)
		return noAction, controller.Result{Requeue: true}, nil
	}
	describeDecision(trace.SpanFromContext(ctx), d)
	r.report.remember(ctx, s, snap, d)
	result, err = r.apply(ctx, s, calls, snap, d)
	controller.Applied(ctx, err)
	if more {
		result = sooner(result, missedEvent)
	}
	return actionOf(d), result, err
}

// apply does what a decision says, and says when to reconcile again.
func (r *reconciler) apply(ctx context.Context, s *state.Job, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse) (controller.Result, error) {
	requeue := r.decider.requeueAfter(snap, d)
	switch d.GetDisposition() {
	case jobpolicyv1.Disposition_DISPOSITION_WAIT:
		r.report.stale(d)
		s.Version.Mark(state.StaleJob)
		result := controller.Result{RequeueAfter: r.cfg.APIBackoff}
		if requeue > 0 {
			result = sooner(result, requeue)
		}
		return result, nil
	case jobpolicyv1.Disposition_DISPOSITION_SETTLED:
		return controller.Result{RequeueAfter: r.decider.regrowth(s, snap, requeue)}, nil
	}
	switch err := r.applier.apply(ctx, s, calls, snap, d); {
	case stepFailed(err):
		return controller.Result{Requeue: true}, err
	case err != nil:
		return controller.Result{}, err
	}
	if d.GetCreate() != nil {
		s.Backoffs.Reset(state.Create)
	}
	return r.followUp(s, d, requeue), nil
}

// followUp says when to reconcile again after a decision was applied.
func (r *reconciler) followUp(s *state.Job, d *jobpolicyv1.DecideJobResponse, requeue time.Duration) controller.Result {
	releases := slices.ContainsFunc(d.GetRelease(), func(b []byte) bool {
		uid, _ := wire.UIDString(b) // The answer was checked, so the UID is valid.
		return s.Backoffs.Releasing(uid)
	})
	changed := d.GetCreate() != nil || len(d.GetDelete()) > 0 || d.GetStatus() != nil || releases
	result := controller.Result{RequeueAfter: missedEvent}
	switch answer.FollowUp(d, changed) {
	case jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE:
		return controller.Result{Requeue: true}
	case jobpolicyv1.FollowUp_FOLLOW_UP_WHEN_CONFIRMED:
		result.RequeueAfter = r.cfg.StatusPeriod
	}
	if requeue > 0 {
		result = sooner(result, requeue)
	}
	return result
}
