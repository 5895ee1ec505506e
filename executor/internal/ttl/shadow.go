package ttl

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/shadow"
)

// compare is reconcile in shadow mode: it asks about all finished Jobs, as the built-in
// controller looks at all, and deletes none.
func (c *Controller) compare(ctx context.Context, key jobKey, job *batchv1.Job) (controller.Result, error) {
	object := shadow.Object{Namespace: key.namespace, Name: key.name, UID: key.uid}
	return c.comparer.Compare(ctx, object, func(ctx context.Context) (shadow.Answer, error) {
		d, err := c.ask(ctx, job)
		if err != nil {
			return shadow.Answer{}, err
		}
		return shadow.Answer{Differences: shadow.OfFinishedJob(d), Next: c.later(d).RequeueAfter}, nil
	})
}
