package executor

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
)

// refresh reads from the API server what the cache does not know for certain: the outcome
// of this process's writes, and changes by other clients. awaiting says that the watch must
// still show what became of some pods.
func (r *reconciler) refresh(ctx context.Context, s *tracker.Job, calls *api.Pods) (awaiting bool, err error) {
	release, err := r.decider.slot(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	job := s.Current()
	if job == nil {
		return false, api.ErrGone
	}
	if s.Has(tracker.StaleJob) {
		if job, err = r.readJob(ctx, s, job); err != nil {
			return false, err
		}
	}
	if s.Has(tracker.StalePods) || s.NeedsList() || r.cfg.mustSee(s) {
		// Clear the mark before the list: something may happen meanwhile that needs another list.
		s.Clear(tracker.StalePods)
		if err := calls.List(ctx, job); err != nil {
			s.Mark(tracker.StalePods)
			return false, err
		}
		r.standStill(ctx, s, job)
	}
	return r.podWatch.sweep(s), nil
}

// readJob reads the Job from the API server. api.ErrGone: it does not exist any more.
func (r *reconciler) readJob(ctx context.Context, s *tracker.Job, job *batchv1.Job) (_ *batchv1.Job, err error) {
	ctx, end := r.api.Tracer.Span(ctx, telemetry.SpanJobRead)
	defer func() { end(err) }()
	fresh, err := r.api.Job(ctx, job.Namespace, job.Name, job.UID)
	if err != nil {
		return nil, err
	}
	s.Observe(fresh, tracker.Response)
	r.report.resolve(ctx, s)
	s.Clear(tracker.StaleJob)
	if current := s.Current(); current != nil {
		return current, nil
	}
	return nil, api.ErrGone
}
