package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/gang"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A stepError says that a step of a decision was not carried out in full, and is backing off. The
// rest of the Job goes on.
type stepError struct {
	what  undone
	cause error
}

// undone is what a step has not done.
type undone string

const (
	// notCreated, notDeleted: at least one pod was not. The later steps of the decision were not begun.
	notCreated undone = "pods not created"
	notDeleted undone = "pods not deleted"
	// notPruned: at least one finished pod was not deleted. Everything else was done.
	notPruned undone = "finished pods not deleted"
	// noGang: the group of the Job's pods was not changed. The creation of pods is backing off.
	noGang undone = "pod group not changed"
	// notReleased: the API server refused to remove the finalizers of some pods. Only their releases
	// are backing off.
	notReleased undone = "finalizers not removed"
)

func (e *stepError) Error() string { return string(e.what) + ": " + e.cause.Error() }

func (e *stepError) Unwrap() error { return e.cause }

// applier carries out decisions.
type applier struct {
	base   *controller.Controller
	cfg    *Config
	api    *api.Client
	gangs  *gang.Gangs
	report *reporter
}

// apply does what a decision says, and says when to reconcile the Job again.
func (a *applier) apply(ctx context.Context, s *tracker.Job, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse) (controller.Result, error) {
	requeue := a.cfg.requeueAfter(snap, d)
	if d.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_SETTLED {
		if !snap.deferred() {
			s.Refusals.Over(writes.CreatePod, writes.DeletePod, writes.EndPod, writes.UpdateStatus)
		}
		a.tellProblems(s, snap, d)
		if _, err := a.group(ctx, s, snap, d); err != nil {
			err = a.backOff(ctx, s, tracker.Create, snap, noGang, err)
			return soonest(controller.Result{RequeueAfter: requeue}, s.StepWaitsUntil(tracker.Create)), err
		}
		return sooner(controller.Result{RequeueAfter: requeue}, a.cfg.regrowth(s, snap)), nil
	}
	err := a.carryOut(ctx, s, calls, snap, d)
	failed, isStep := errors.AsType[*stepError](err)
	switch {
	case errors.Is(err, errUnseen):
		return controller.Result{Requeue: true}, nil
	case err != nil && !isStep:
		return controller.Result{}, err
	case err == nil || failed.what == notReleased:
		return a.cfg.followUp(s, d, requeue), err
	case failed.what == notPruned:
		return soonest(a.cfg.followUp(s, d, requeue), s.StepWaitsUntil(tracker.DeleteFinished)), err
	case failed.what == noGang:
		return soonest(a.cfg.followUp(s, d, requeue), s.StepWaitsUntil(tracker.Create)), err
	}
	return controller.Result{Requeue: true}, err
}

// carryOut carries out a decision in the contract's order: gang, create, or delete and end, status,
// release, events, deletion of finished pods. It stops at the first step that does not succeed in full. The next
// snapshot contains what succeeded.
func (a *applier) carryOut(ctx context.Context, s *tracker.Job, calls *api.Pods, snap snapshot, d *jobpolicyv1.DecideJobResponse) error {
	podGroup, gangErr := a.group(ctx, s, snap, d)
	if gangErr != nil && d.GetGang().GetMayCreate() && d.GetGang().TemplateName == nil && !errors.Is(gangErr, gang.ErrWait) {
		// A status would say that the Job has begun. After that, its group could not be
		// created any more.
		return fmt.Errorf("gang: %w", gangErr)
	}
	if gangErr != nil && d.GetCreate() != nil {
		return a.backOff(ctx, s, tracker.Create, snap, notCreated, gangErr)
	}
	switch err := a.createPods(ctx, s, calls, snap, d, podGroup); {
	case errors.Is(err, errUnseen):
		return err // The next reconcile lists the pods.
	case err != nil:
		return a.backOff(ctx, s, tracker.Create, snap, notCreated, err)
	}
	if err := errors.Join(a.deletePods(ctx, s, calls, snap.job, d.GetDelete()), a.endPods(ctx, s, calls, d.GetEnd())); err != nil {
		return a.backOff(ctx, s, tracker.Delete, snap, notDeleted, err)
	}
	write, err := a.writeStatus(ctx, s, calls, snap, d)
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	a.report.actions(write.Actions)
	began := time.Now()
	err = a.releasePods(ctx, s, calls, d.GetRelease())
	if d.GetStatus() != nil && len(d.GetRelease()) > a.cfg.Writes.PerJob {
		s.PostponeStatus(time.Since(began))
	}
	// The events go out even after an error: the status is written, so no later decision has
	// them again.
	a.base.RecordEvents(snap.job, write.Events)
	a.tellProblems(s, snap, d)
	if err != nil {
		return fmt.Errorf("releasing finalizers: %w", err)
	}
	pruneErr := a.deleteFinished(ctx, s, calls, snap.job, d.GetDeleteFinished())
	if gangErr != nil {
		return a.backOff(ctx, s, tracker.Create, snap, noGang, gangErr)
	}
	if pruneErr != nil {
		return a.backOff(ctx, s, tracker.DeleteFinished, snap, notPruned, pruneErr)
	}
	return nil
}

// reasonInvalidPolicy is the reason of events about options that cannot be read.
const reasonInvalidPolicy = "InvalidPolicy"

// tellProblems records a decision's events about options that cannot be read, unless they tell what was told last.
// This adjusts no decision: by the contract (JobEvent) these events come with every decision, and are recorded as
// event recorders do, for which a repetition is no new event.
func (a *applier) tellProblems(s *tracker.Job, snap snapshot, d *jobpolicyv1.DecideJobResponse) {
	if s.NewProblems(snap.req.GetSpec().GetOptionProblems()) {
		a.base.RecordEvents(snap.job, eventsOf(d, true))
	}
}

// eventsOf are the events of a decision that are about options that cannot be read, or all others.
func eventsOf(d *jobpolicyv1.DecideJobResponse, aboutOptions bool) (events []*jobpolicyv1.JobEvent) {
	for _, ev := range d.GetEvents() {
		if (ev.GetReason() == reasonInvalidPolicy) == aboutOptions {
			events = append(events, ev)
		}
	}
	return events
}

// group makes the group of the Job's pods as the decision has it, and returns its name. While the creation
// of pods is backing off, and the decision creates none, it does nothing.
func (a *applier) group(ctx context.Context, s *tracker.Job, snap snapshot, d *jobpolicyv1.DecideJobResponse) (podGroup string, err error) {
	creates := d.GetCreate() != nil
	if !creates && !d.GetGang().GetMayCreate() && time.Now().Before(s.StepWaitsUntil(tracker.Create)) {
		return "", nil
	}
	return a.gangs.Ensure(ctx, &s.Refusals, snap.job, d.GetGang(), creates)
}

// backOff starts the backoff of a step; the other steps of the Job go on. It returns a stepError: what
// was not done, and cause (why not). A Job's options may shorten the delay after a quota refused new pods. They act on
// each refusal anew, and the delay grows meanwhile as it does for other Jobs.
func (a *applier) backOff(ctx context.Context, s *tracker.Job, step tracker.Step, snap snapshot, what undone, cause error) error {
	delay := s.StepFailed(step, a.base.BackoffLimits())
	if shorter := api.QuotaDelay(delay, snap.req.GetSpec().GetOptions(), cause); step == tracker.Create && shorter < delay {
		delay = s.ShortenStep(step, shorter)
	}
	if !errors.Is(cause, api.ErrNamespaceTerminating) && !errors.Is(cause, context.Canceled) {
		a.cfg.Logger.WarnContext(ctx, string(what), append(telemetry.JobAttrs(snap.job), slog.Duration("retryAfter", delay), slog.Any("error", cause))...)
	}
	return &stepError{what, cause}
}
