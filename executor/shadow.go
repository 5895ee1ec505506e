package executor

import (
	"context"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
)

// A jobComparer takes the place of the reconciler in shadow mode: it makes the same snapshots
// and asks the same questions, but cannot apply an answer.
type jobComparer struct {
	scope    controller.Scope
	jobs     *tracker.Jobs
	decider  *decider
	comparer *shadow.Comparer
}

// compare asks the engine about a Job, if it is at rest.
func (c *jobComparer) compare(ctx context.Context, key tracker.Key) (controller.Result, error) {
	s, ok := c.jobs.Find(key)
	if !ok {
		return controller.Result{}, nil
	}
	job := s.Current()
	if !c.scope.Reconciles(job) || !wire.KnownCompletionMode(job) {
		return controller.Result{}, nil
	}
	object := shadow.Object{Namespace: job.Namespace, Name: job.Name, UID: key.UID}
	return c.comparer.Compare(ctx, object, func(ctx context.Context) (shadow.Answer, error) { return c.answer(ctx, s) })
}

// answer makes a request from what is known of a Job, and says what the decision would change.
func (c *jobComparer) answer(ctx context.Context, s *tracker.Job) (shadow.Answer, error) {
	snap, d, err := c.decider.decide(ctx, s, toCompare)
	if err != nil {
		return shadow.Answer{}, err
	}
	c.decider.report.remember(ctx, s, snap, d)
	return shadow.Answer{Differences: shadow.OfJob(snap.req, d), Next: c.decider.cfg.requeueAfter(snap, d)}, nil
}
