package cronjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// eventNotSuspended is the reason of the event on a CronJob that names this controller, but
// whose spec.suspend is not true, so that the built-in controller runs it.
const eventNotSuspended = "NotSuspended"

// Reconcile asks the engine about a CronJob and carries out what it decides. In shadow mode it
// only compares.
func (c *Controller) Reconcile(ctx context.Context, key cronKey) (controller.Result, error) {
	s, ok := c.known(key.uid)
	if !ok {
		return controller.Result{}, nil
	}
	cron := s.current()
	switch {
	case cron == nil:
		return controller.Result{}, nil
	case !c.scope.Runs(cron):
		c.comparer.Gone(key.uid)
		c.leaveGroup(s)
		c.warnNotSuspended(s, cron)
		return controller.Result{}, nil
	case c.comparer != nil:
		return c.compare(ctx, s)
	}
	ctx, end := c.base.RootSpan(ctx, telemetry.SpanCronJobReconciled,
		telemetry.AttrNamespace.String(key.namespace), telemetry.AttrCronJobName.String(key.name), telemetry.AttrCronJobUID.String(string(key.uid)))
	result, err := c.reconcile(ctx, s)
	if errors.Is(err, api.ErrGone) {
		err = nil
	}
	if err != nil {
		c.losePlace(s, err)
	}
	end(err)
	return result, err
}

func (c *Controller) reconcile(ctx context.Context, s *cronState) (controller.Result, error) {
	snap, d, err := c.decide(ctx, s)
	if err != nil {
		return controller.Result{}, err
	}
	if kept, err := c.applier.keepOptions(ctx, s, snap); kept || errors.Is(err, api.ErrChanged) {
		return controller.Result{Requeue: true}, nil
	} else if err != nil {
		return controller.Result{}, fmt.Errorf("keeping the last valid options: %w", err)
	}
	s.decided(d)
	c.keepPlace(s, snap, d)
	explain(ctx, c.cfg.Logger, snap, d)
	again, err := c.applier.apply(ctx, s, snap, d)
	controller.RecordOutcome(ctx, err)
	if err == nil && again || decideAgain(err) {
		return controller.Result{Requeue: true}, nil
	}
	result := controller.At(d.GetRequeueTime(), c.cfg.Now())
	if backsOff := s.backsOff(); snap.group.name != "" && s.runs.unresolved("") != "" && backsOff > 0 {
		result.RequeueAfter = min(cmp.Or(result.RequeueAfter, backsOff), backsOff) // For findLost.
	}
	if again := c.tellWait(s, snap, d); again > 0 {
		result.RequeueAfter = min(cmp.Or(result.RequeueAfter, again), again)
	}
	return result, err
}

// warnNotSuspended says why a CronJob that names this controller is left alone.
func (c *Controller) warnNotSuspended(s *cronState, cron *batchv1.CronJob) {
	if !c.scope.HandedOver(cron) {
		return
	}
	s.warnOnce(c.base.Recorder, cron, eventNotSuspended, fmt.Sprintf(
		"%s names this controller, but spec.suspend is not true: the built-in controller runs this CronJob until it is", wire.CronJobManagedBy))
}

// warnOnce records a warning once for each generation and text.
func (s *cronState) warnOnce(recorder record.EventRecorder, cron *batchv1.CronJob, reason, message string) {
	warning := fmt.Sprintf("%d %s", cron.Generation, message)
	s.mu.Lock()
	repeated := s.warned == warning
	s.warned = warning
	s.mu.Unlock()
	if !repeated {
		recorder.Event(cron, corev1.EventTypeWarning, reason, message)
	}
}

// decide asks the engine. If the engine must know which Jobs of the active list are absent,
// it asks once more.
func (c *Controller) decide(ctx context.Context, s *cronState) (snapshot, *jobpolicyv1.DecideCronJobResponse, error) {
	snap, err := c.snapshot(s)
	if err != nil {
		return snapshot{}, nil, err
	}
	d, err := c.ask(ctx, s, snap)
	if err != nil || d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		return snap, d, err
	}
	absent, err := c.absentJobs(ctx, s, snap)
	if err != nil {
		return snapshot{}, nil, err
	}
	if snap, err = c.snapshot(s); err != nil {
		return snapshot{}, nil, err
	}
	snap.req.AbsentJobs = absent
	if d, err = c.ask(ctx, s, snap); err != nil {
		return snapshot{}, nil, err
	}
	if d.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		return snapshot{}, nil, fmt.Errorf("engine asks again for %v, which the request has: %w", d.GetRequirements(), controller.ErrBadAnswer)
	}
	return snap, d, nil
}

// absentJobs reads the Jobs of the active list that the watch does not show. It returns the
// UIDs of those that do not exist. The others count as seen from now on.
func (c *Controller) absentJobs(ctx context.Context, s *cronState, snap snapshot) ([][]byte, error) {
	seen := map[types.UID]bool{}
	for _, job := range snap.jobs {
		seen[job.UID] = true
	}
	var absent [][]byte
	for _, ref := range snap.cron.Status.Active {
		uid, err := wire.ActiveJobUID(&ref)
		if err != nil || seen[ref.UID] {
			continue // It is not valid, or the watch shows it.
		}
		job, err := c.api.Job(ctx, s.namespace, ref.Name, ref.UID)
		switch {
		case err != nil && !errors.Is(err, api.ErrGone):
			return nil, err
		case err == nil && controllingUID(job) == s.uid:
			s.runs.add(job)
		default:
			absent = append(absent, uid)
		}
	}
	return absent, nil
}

const secondsOfDay = 24 * 60 * 60

// ask calls the engine and checks its answer.
func (c *Controller) ask(ctx context.Context, s *cronState, snap snapshot) (*jobpolicyv1.DecideCronJobResponse, error) {
	d, err := controller.Ask(ctx, c.base, c.base.Decider.DecideCronJob, snap.req)
	if errors.Is(err, controller.ErrRejected) {
		s.warnOnce(c.base.Recorder, snap.cron, controller.EventPolicyRejected, controller.Rejection(err))
	}
	if err != nil {
		return nil, err
	}
	if d.GetCreate() != nil && d.GetStatus() != nil {
		return nil, fmt.Errorf("a creation and a status in one decision: %w", controller.ErrBadAnswer)
	}
	if offset := d.GetCreate().GetUtcOffsetSeconds(); offset <= -secondsOfDay || offset >= secondsOfDay {
		return nil, fmt.Errorf("a time zone %d seconds ahead of UTC: %w", offset, controller.ErrBadAnswer)
	}
	if events, deletions := len(d.GetEvents()), len(d.GetDelete()); events < deletions {
		return nil, fmt.Errorf("%d events, want one for each of %d deletions: %w", events, deletions, controller.ErrBadAnswer)
	}
	return d, nil
}

// explain writes the decision's explanation to the span and the log.
func explain(ctx context.Context, log *slog.Logger, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) {
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(telemetry.AttrSummary.String(d.GetExplanation().GetSummary()))
	telemetry.DescribeRules(span, d.GetExplanation().GetRules())
	log.DebugContext(ctx, "decided", slog.String("namespace", snap.cron.Namespace), slog.String("cronJob", snap.cron.Name),
		slog.String("summary", d.GetExplanation().GetSummary()))
}
