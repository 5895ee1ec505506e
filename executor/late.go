package executor

import (
	"context"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// endLate deletes a pod that runs although its Job is finished: an executor that did
// not know that yet has created it, before it lost its lease or beside this one.
// Nobody else would end it as long as the Job is there.
func (e *Executor) endLate(ctx context.Context, pod *podcache.Pod) error {
	ref, _ := pod.ControllingJob()
	if ref == nil || pod.Ended() || pod.Deleting {
		return nil
	}
	s, ok := e.jobs.find(ref.UID)
	if !ok {
		return nil
	}
	job := s.current()
	if job == nil || job.DeletionTimestamp != nil || !e.ours(job) || wire.FinishedCondition(job) == nil {
		return nil // Whoever deletes a Job says what becomes of its pods.
	}
	if matches := podPolicy(job).Matches; matches != nil && !matches(pod) {
		return nil // It is a stray, which is released and runs on.
	}
	return e.podCalls(s).Delete(ctx, job, pod.UID, false)
}
