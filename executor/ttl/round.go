package ttl

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// round decides on one Job, and deletes it if that is due. after is when to look
// again; 0: only when something changes.
func (c *Controller) round(ctx context.Context, key jobKey) (after time.Duration, err error) {
	obj, exists, err := c.cfg.Jobs.GetStore().GetByKey(key.namespace + "/" + key.name)
	if err != nil || !exists {
		return 0, err
	}
	job := obj.(*batchv1.Job)
	if job.UID != key.uid || !c.inCare(job) || !c.timed(job) {
		return 0, nil
	}
	if d, err := c.ask(ctx, job); err != nil || d.GetDeleteJob() == nil {
		return c.later(d), err
	}
	live, err := c.live(ctx, key)
	if err != nil || live == nil || !c.inCare(live) {
		return 0, err
	}
	d, err := c.ask(ctx, live)
	if err != nil || d.GetDeleteJob() == nil {
		return c.later(d), err
	}
	return 0, c.delete(ctx, live, d)
}

func (c *Controller) later(d *jobpolicyv1.DecideJobResponse) time.Duration {
	if d.GetRequeueTime() == nil {
		return 0
	}
	return min(max(d.GetRequeueTime().AsTime().Sub(c.now()), time.Millisecond), maxWait)
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

// live reads the Job past every cache; nil when it does not exist any more.
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

// delete deletes the version of the Job that was judged, its pods first. One that
// has changed since comes back with the event of the change.
func (c *Controller) delete(ctx context.Context, job *batchv1.Job, d *jobpolicyv1.DecideJobResponse) (err error) {
	ctx, end := c.span(ctx, job, d)
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
	c.log.InfoContext(ctx, "finished job deleted", slog.String("namespace", job.Namespace), slog.String("job", job.Name),
		slog.String("reason", d.GetExplanation().GetSummary()))
	return nil
}
