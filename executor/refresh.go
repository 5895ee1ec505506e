package executor

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/tracker"
)

// refresh reads from the API server what the cache does not tell for certain: the
// outcome of own writes, and what somebody else has done.
func (e *Executor) refresh(ctx context.Context, s *jobState, calls *api.Pods) error {
	s.mu.Lock()
	read, list, job := s.readDue, s.listDue, s.job
	s.mu.Unlock()
	if job == nil {
		return api.ErrJobGone
	}
	if read {
		fresh, err := e.readJob(ctx, s, job)
		if err != nil {
			return err
		}
		job = fresh
	}
	s.mu.Lock()
	list = list || s.listDue
	s.mu.Unlock()
	if list || s.pods.Unsettled() {
		if err := e.listPods(ctx, s, calls, job); err != nil {
			return err
		}
	}
	store := e.podInformer.GetStore()
	more := s.pods.Sweep(tracker.ResourceVersion(store.LastStoreSyncResourceVersion()), func(pod *podcache.Pod) bool {
		stored, ok := e.storedPod(pod.Namespace(), pod.Name)
		return ok && stored.UID == pod.UID
	})
	if more {
		e.queue.AddAfter(s.uid, missedEvent)
	}
	return nil
}

// overdue reports whether something has to be done before the next decision. A Job
// that is being deleted claims no pods.
func (s *jobState) overdue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readDue || s.listDue || (s.claimDue && s.job != nil && s.job.DeletionTimestamp == nil)
}

// readJob reads the Job from the API server and takes it in. api.ErrJobGone: it does
// not exist any more.
func (e *Executor) readJob(ctx context.Context, s *jobState, job *batchv1.Job) (_ *batchv1.Job, err error) {
	ctx, end := e.tracer.Span(ctx, telemetry.SpanJobRead)
	defer func() { end(err) }()
	fresh, err := e.api.Job(ctx, job.Namespace, job.Name, job.UID)
	if err != nil {
		return nil, err
	}
	s.observe(fresh, jobRead)
	e.settleUnanswered(ctx, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readDue = false
	if s.job == nil {
		return nil, api.ErrJobGone
	}
	return s.job, nil
}

// listPods lists the Job's pods. The need for it is cleared before: what happens while
// the list is under way may need another one.
func (e *Executor) listPods(ctx context.Context, s *jobState, calls *api.Pods, job *batchv1.Job) error {
	s.mu.Lock()
	s.listDue = false
	s.mu.Unlock()
	err := calls.List(ctx, job)
	if err != nil {
		s.due(false, false, true)
	}
	return err
}

func (e *Executor) storedPod(namespace, name string) (*podcache.Pod, bool) {
	obj, ok, err := e.podInformer.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil, false
	}
	pod, ok := obj.(*podcache.Pod)
	return pod, ok
}
