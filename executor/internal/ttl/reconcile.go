package ttl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Reconcile deletes a finished Job if its time to live is over. In shadow mode it only compares.
func (c *Controller) Reconcile(ctx context.Context, key jobKey) (controller.Result, error) {
	job, err := c.finished(key)
	switch {
	case err != nil:
		return controller.Result{}, err
	case job == nil:
		c.comparer.Gone(key.uid)
		return controller.Result{}, nil
	case c.comparer != nil:
		return c.compare(ctx, key, job)
	}
	ctx, end := c.base.RootSpan(ctx, telemetry.SpanTTLReconciled,
		telemetry.AttrNamespace.String(job.Namespace), telemetry.AttrJobName.String(job.Name), telemetry.AttrJobUID.String(string(job.UID)))
	result, err := c.reconcile(ctx, key, job)
	end(err)
	return result, err
}

// finished returns the Job if it has finished, is managed, and may have a time to live, or
// else nil.
func (c *Controller) finished(key jobKey) (*batchv1.Job, error) {
	obj, exists, err := c.cfg.Jobs.Get(key.namespace, key.name)
	if err != nil || !exists {
		return nil, err
	}
	job := obj.(*batchv1.Job)
	if job.UID != key.uid || !c.scope.Expires(job) || !c.mayExpire(job) {
		return nil, nil
	}
	return job, nil
}

func (c *Controller) reconcile(ctx context.Context, key jobKey, job *batchv1.Job) (controller.Result, error) {
	if d, err := c.ask(ctx, job); err != nil || d.GetDeleteJob() == nil {
		c.refusals(job).Over(writes.DeleteJob)
		return c.later(d), err
	}
	live, err := c.api.Job(ctx, key.namespace, key.name, key.uid)
	switch {
	case errors.Is(err, api.ErrGone):
		return controller.Result{}, nil
	case err != nil || !c.scope.Expires(live):
		return controller.Result{}, err
	}
	d, err := c.ask(ctx, live)
	if err != nil || d.GetDeleteJob() == nil {
		return c.later(d), err
	}
	c.base.RecordEvents(live, d.GetEvents())
	err = c.delete(ctx, live, d)
	controller.RecordOutcome(ctx, err)
	if apierrors.IsConflict(err) && c.changedSince(ctx, live) {
		return controller.Result{Requeue: true}, nil
	}
	return controller.Result{}, err
}

// changedSince reports whether somebody has changed the Job since it was decided on. Otherwise a
// conflict has another cause, such as an admission webhook.
func (c *Controller) changedSince(ctx context.Context, decidedOn *batchv1.Job) bool {
	live, err := c.api.Job(ctx, decidedOn.Namespace, decidedOn.Name, decidedOn.UID)
	return err == nil && live.ResourceVersion != decidedOn.ResourceVersion
}

// refusals are the refused writes for a Job; nil if they are remembered nowhere.
func (c *Controller) refusals(job *batchv1.Job) *writes.Refusals {
	if c.cfg.Refusals == nil {
		return nil
	}
	return c.cfg.Refusals(job)
}

func (c *Controller) later(d *jobpolicyv1.DecideJobResponse) controller.Result {
	return controller.At(d.GetRequeueTime(), c.now())
}

// now is the earlier of the two clocks.
func (c *Controller) now() time.Time {
	now := c.cfg.Now()
	if c.cfg.ServerNow == nil {
		return now
	}
	if server := c.cfg.ServerNow(); !server.IsZero() && server.Before(now) {
		return server
	}
	return now
}

// delete deletes the version of the Job that was decided on, its pods first. If the Job has
// changed since, the deletion fails.
func (c *Controller) delete(ctx context.Context, job *batchv1.Job, d *jobpolicyv1.DecideJobResponse) (err error) {
	ctx, end := c.base.Span(ctx, telemetry.SpanJobDeleted, telemetry.AttrSummary.String(d.GetExplanation().GetSummary()))
	defer func() { end(err) }()
	err = c.api.DeleteJobVersion(ctx, c.refusals(job), job)
	switch {
	case errors.Is(err, api.ErrGone):
		return nil
	case err != nil:
		return fmt.Errorf("deleting job: %w", err)
	}
	if due := d.GetDeleteJob().GetDueTime(); due != nil {
		c.delay.Observe(c.now().Sub(due.AsTime()).Seconds())
	}
	c.cfg.Logger.InfoContext(ctx, "finished job deleted", slog.String("namespace", job.Namespace), slog.String("job", job.Name),
		slog.String("reason", d.GetExplanation().GetSummary()))
	return nil
}
