package cronjob

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/shadow"
)

// compare is Reconcile in shadow mode: it asks the same questions. There is no applier, so no
// answer can be applied.
func (c *Controller) compare(ctx context.Context, uid types.UID) (controller.Result, error) {
	s, ok := c.known(uid)
	if !ok {
		return controller.Result{}, nil
	}
	cron := s.current()
	if cron == nil || !c.scope.Runs(cron) {
		c.comparer.Gone(uid)
		return controller.Result{}, nil
	}
	object := shadow.Object{Namespace: cron.Namespace, Name: cron.Name, UID: uid}
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
	s.runs.recorded(snap.jobs) // Jobs that absentJobs found are forgotten once the watch has shown them.
	return shadow.Answer{
		Differences: shadow.OfCronJob(snap.req, d), Next: controller.At(d.GetRequeueTime(), c.cfg.Now()).RequeueAfter,
	}, nil
}
