package executor

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/podcache"
)

// claim settles who controls which pod: pods that nothing controls and the
// Job's selector matches are adopted; the Job's own pods that it does not match
// any more are let go. A Job that is being deleted adopts nothing, and its pods
// stay its own, to go with it; but their finalizer would hold up its deletion.
func (e *Executor) claim(ctx context.Context, s *jobState, calls *api.Pods, job *batchv1.Job) error {
	strays := s.pods.Strays()
	err := s.patching.Do(ctx, len(strays), func(ctx context.Context, i int) error {
		if job.DeletionTimestamp != nil {
			return e.releasePod(ctx, s, calls, strays[i])
		}
		return e.letGo(ctx, s, calls, strays[i])
	})
	if err != nil || job.DeletionTimestamp != nil {
		return err
	}
	s.mu.Lock()
	claimDue := s.claimDue
	s.claimDue = false
	s.mu.Unlock()
	if !claimDue {
		return nil
	}
	if err := e.adoptAll(ctx, s, calls, job); err != nil {
		s.due(true, false, false)
		return err
	}
	return nil
}

func (e *Executor) adoptAll(ctx context.Context, s *jobState, calls *api.Pods, job *batchv1.Job) error {
	var wanted []*podcache.Pod
	for _, pod := range e.loosePods(job.Namespace) {
		if _, known := s.pods.Pod(pod.UID); !known && !pod.Deleting && s.matches(pod) {
			wanted = append(wanted, pod)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	// The cache may not show yet that the Job is going away; an adopted pod
	// would go with it.
	live, err := e.readJob(ctx, s, job)
	if err != nil || live.DeletionTimestamp != nil {
		return err
	}
	ref := metav1.NewControllerRef(job, jobKind)
	return s.patching.Do(ctx, len(wanted), func(ctx context.Context, i int) error {
		return calls.Adopt(ctx, ref, wanted[i], func(pod *podcache.Pod) bool {
			return !pod.Controlled() && !pod.Deleting && s.matches(pod)
		})
	})
}

// letGo gives up a pod that the Job's selector does not match any more, unless that is
// backing off.
func (e *Executor) letGo(ctx context.Context, s *jobState, calls *api.Pods, pod *podcache.Pod) error {
	if s.releaseHeld(pod.UID) {
		return nil
	}
	after, err := calls.Disown(ctx, pod, func(pod *podcache.Pod) bool { return !s.matches(pod) })
	if err != nil {
		return err
	}
	if after == nil || s.matches(after) {
		return nil
	}
	if ref, _ := after.ControllingJob(); ref != nil && ref.UID == s.uid {
		e.holdRelease(ctx, s, after)
	}
	return nil
}
