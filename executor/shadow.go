package executor

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/scope"
	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// An observer takes the place of the reconciler in shadow mode: it makes the same snapshots
// and asks the same questions, but cannot apply an answer.
type observer struct {
	scope   scope.Scope
	jobs    *state.Jobs
	decider *decider
	looker  *shadow.Looker
}

func (o *observer) jobHandler() cache.ResourceEventHandler {
	return controller.Handler(o.seen, o.gone)
}

// seen forgets a Job that is not reconciled any more, for example because it has finished.
func (o *observer) seen(old, job *batchv1.Job) {
	if old != nil && old.UID != job.UID {
		o.looker.Gone(old.UID)
	}
	if !o.scope.Reconciles(job) {
		o.looker.Gone(job.UID)
	}
}

func (o *observer) gone(job *batchv1.Job) { o.looker.Gone(job.UID) }

// look asks the engine about a Job, if it is at rest.
func (o *observer) look(ctx context.Context, uid types.UID) (controller.Result, error) {
	s, ok := o.jobs.Find(uid)
	if !ok {
		return controller.Result{}, nil
	}
	job := s.Version.Current()
	if !o.scope.Reconciles(job) || !wire.KnownCompletionMode(job) {
		return controller.Result{}, nil
	}
	object := shadow.Object{Type: shadow.TypeJob, Namespace: job.Namespace, Name: job.Name, UID: uid}
	return o.looker.Look(ctx, object, func(ctx context.Context) (shadow.Answer, error) { return o.ask(ctx, s) })
}

// ask makes a request from what is known of a Job, and says what the decision would change.
func (o *observer) ask(ctx context.Context, s *state.Job) (shadow.Answer, error) {
	snap, d, err := o.decider.complete(ctx, s, func(snap snapshot) (*jobpolicyv1.DecideJobResponse, error) {
		return o.decider.ask(ctx, s, snap)
	})
	if err != nil {
		return shadow.Answer{}, err
	}
	o.decider.report.remember(ctx, s, snap, d)
	return shadow.Answer{Differences: shadow.OfJob(snap.req, d), Next: o.decider.cfg.requeueAfter(snap, d)}, nil
}

// ignoreOrphans replaces the releaser of orphans in shadow mode.
type ignoreOrphans struct{}

func (ignoreOrphans) Enqueue(*podcache.Pod)                     {}
func (ignoreOrphans) EnqueueUncontrolled(_, _ *podcache.Pod)    {}
func (ignoreOrphans) EnqueueLeftovers(*state.Job, *batchv1.Job) {}
