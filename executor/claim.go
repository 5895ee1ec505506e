package executor

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/podcache"
)

// claim settles who controls which pod: pods that nothing controls and the
// Job's selector matches are adopted; the Job's own pods that it does not match
// any more are let go. A Job that is being deleted adopts nothing, and its pods
// stay its own, to go with it; but their finalizer would hold up its deletion.
func (e *Executor) claim(ctx context.Context, s *jobState, job *batchv1.Job) error {
	strays := s.pods.Strays()
	err := s.patching.Do(ctx, len(strays), func(ctx context.Context, i int) error {
		if job.DeletionTimestamp != nil {
			return e.releaseStray(ctx, s, strays[i])
		}
		return e.letGo(ctx, s, job, strays[i])
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
	if err := e.adoptAll(ctx, s, job); err != nil {
		s.due(true, false, false)
		return err
	}
	return nil
}

func (e *Executor) adoptAll(ctx context.Context, s *jobState, job *batchv1.Job) error {
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
	return s.patching.Do(ctx, len(wanted), func(ctx context.Context, i int) error { return e.adopt(ctx, s, job, wanted[i]) })
}

// adopt makes a pod that nothing controls the Job's, as it was seen: another
// executor may have adopted, counted and released it since, and a finalizer given to
// it again would make it count a second time (I2).
func (e *Executor) adopt(ctx context.Context, s *jobState, job *batchv1.Job, pod *podcache.Pod) (err error) {
	ctx, end := e.span(ctx, SpanPodClaimed, AttrPodName.String(pod.Name), AttrPodUID.String(string(pod.UID)))
	defer func() { end(err) }()
	ref := metav1.NewControllerRef(job, jobKind)
	_, err = e.patchAsSeen(ctx, s, pod, func(pod *podcache.Pod) (patchMeta, bool) {
		return patchMeta{
			OwnerReferences: []ownerRefPatch{{
				APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Controller: true, BlockOwnerDeletion: true,
			}},
			Finalizers: []string{batchv1.JobTrackingFinalizer},
		}, !controlled(pod) && !pod.Deleting && s.matches(pod)
	})
	if err != nil {
		return fmt.Errorf("adopting pod %s: %w", pod.Name, err)
	}
	return nil
}

// releaseStray releases a pod that goes with its Job.
func (e *Executor) releaseStray(ctx context.Context, s *jobState, pod *podcache.Pod) error {
	if !pod.Held || s.releaseHeld(pod.UID) {
		return nil
	}
	err := e.release(ctx, s, pod)
	if errors.Is(err, errPutBack) {
		e.holdRelease(ctx, s, pod)
		return nil
	}
	return err
}

// letGo gives up a pod that the Job's selector does not match any more, as it was
// seen: it may match again since.
func (e *Executor) letGo(ctx context.Context, s *jobState, job *batchv1.Job, pod *podcache.Pod) (err error) {
	if s.releaseHeld(pod.UID) {
		return nil
	}
	ctx, end := e.span(ctx, SpanPodClaimed, AttrPodName.String(pod.Name), AttrPodUID.String(string(pod.UID)))
	defer func() { end(err) }()
	after, err := e.patchAsSeen(ctx, s, pod, func(pod *podcache.Pod) (patchMeta, bool) {
		ref, _ := jobRef(pod)
		return patchMeta{
			OwnerReferences:  []ownerRefPatch{{Patch: "delete", UID: job.UID}},
			DeleteFinalizers: []string{batchv1.JobTrackingFinalizer},
		}, ref != nil && ref.UID == job.UID && !s.matches(pod)
	})
	if err != nil {
		return fmt.Errorf("letting pod %s go: %w", pod.Name, err)
	}
	if after == nil || s.matches(after) {
		return nil
	}
	if ref, _ := jobRef(after); ref != nil && ref.UID == job.UID {
		e.holdRelease(ctx, s, after)
	}
	return nil
}
