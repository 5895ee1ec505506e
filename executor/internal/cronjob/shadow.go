package cronjob

import (
	"context"
	"errors"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/shadow"
)

// compare is reconcile in shadow mode: it asks the same questions. There is no applier, so no
// answer can be applied.
func (c *Controller) compare(ctx context.Context, s *cronState) (controller.Result, error) {
	object := shadow.Object{Namespace: s.namespace, Name: s.name, UID: s.uid}
	return c.comparer.Compare(ctx, object, func(ctx context.Context) (shadow.Answer, error) { return c.answer(ctx, s) })
}

// answer asks the engine, and returns what the decision would change.
func (c *Controller) answer(ctx context.Context, s *cronState) (shadow.Answer, error) {
	snap, d, err := c.decide(ctx, s)
	if errors.Is(err, api.ErrGone) {
		return shadow.Answer{}, nil
	}
	if err != nil {
		return shadow.Answer{}, err
	}
	s.decided(d)
	c.keepPlace(s, snap, d)
	s.runs.recorded(snap.jobs) // Jobs that absentJobs found are forgotten once the watch has shown them.
	return shadow.Answer{
		Differences: shadow.OfCronJob(snap.req, d), Next: controller.At(d.GetRequeueTime(), c.cfg.Now()).RequeueAfter,
	}, nil
}
