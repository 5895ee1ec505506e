package ttl

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/controller"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// apiTimeout bounds one call of the API server, including the wait for the client's
// rate limit.
const apiTimeout = 60 * time.Second

// Reconcile deletes a finished Job if its time to live is over.
func (c *Controller) Reconcile(ctx context.Context, key jobKey) (controller.Result, error) {
	obj, exists, err := c.cfg.Jobs.GetStore().GetByKey(key.namespace + "/" + key.name)
	if err != nil || !exists {
		return controller.Result{}, err
	}
	job := obj.(*batchv1.Job)
	if job.UID != key.uid || !c.managed(job) || !c.limited(job) {
		return controller.Result{}, nil
	}
	ctx, end := c.base.RootSpan(ctx, SpanTTLReconciled, attrs(job)...)
	result, err := c.reconcile(ctx, key, job)
	end(err)
	return result, err
}

func (c *Controller) reconcile(ctx context.Context, key jobKey, job *batchv1.Job) (controller.Result, error) {
	if d, err := c.ask(ctx, job); err != nil || d.GetDeleteJob() == nil {
		return c.later(d), err
	}
	live, err := c.live(ctx, key)
	if err != nil || live == nil || !c.managed(live) {
		return controller.Result{}, err
	}
	d, err := c.ask(ctx, live)
	if err != nil || d.GetDeleteJob() == nil {
		return c.later(d), err
	}
	return controller.Result{}, c.delete(ctx, live, d)
}

func (c *Controller) later(d *jobpolicyv1.DecideJobResponse) controller.Result {
	if d.GetRequeueTime() == nil {
		return controller.Result{}
	}
	return controller.After(d.GetRequeueTime().AsTime(), c.now())
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

// live reads the Job from the API server. nil: it does not exist any more.
func (c *Controller) live(ctx context.Context, key jobKey) (*batchv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	job, err := c.cfg.Client.BatchV1().Jobs(key.namespace).Get(ctx, key.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && job.UID != key.uid) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading job: %w", err)
	}
	return job, nil
}

// delete deletes the version of the Job that was decided on, its pods first. If the
// Job has changed since, the event of that change brings it back.
func (c *Controller) delete(ctx context.Context, job *batchv1.Job, d *jobpolicyv1.DecideJobResponse) (err error) {
	ctx, end := c.base.Span(ctx, SpanJobDeleted, controller.AttrSummary.String(d.GetExplanation().GetSummary()))
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	foreground := metav1.DeletePropagationForeground
	err = c.cfg.Client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
		PropagationPolicy: &foreground,
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("deleting job: %w", err)
	}
	if due := d.GetDeleteJob().GetDueTime(); due != nil {
		c.metrics.deletion.Observe(c.now().Sub(due.AsTime()).Seconds())
	}
	c.cfg.Logger.InfoContext(ctx, "finished job deleted", slog.String("namespace", job.Namespace), slog.String("job", job.Name),
		slog.String("reason", d.GetExplanation().GetSummary()))
	return nil
}
