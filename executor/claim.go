package executor

import (
	"context"
	"errors"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/writes"
)

// claim adopts the pods that nothing controls and that the Job's selector matches. It
// disowns the Job's pods that the selector does not match any more (strays). A Job that is
// being deleted adopts and disowns nothing, so that its pods are deleted with it. It only
// releases its strays, because their finalizers would delay the deletion.
func (r *reconciler) claim(ctx context.Context, s *tracker.Job, calls *api.Pods, job *batchv1.Job) error {
	strays := s.Strays()
	keepRefusals(s, writes.DisownPod, strays)
	err := r.applier.patchPods(ctx, s, len(strays), func(ctx context.Context, i int) (*podcache.Pod, error) {
		if job.DeletionTimestamp != nil {
			return strays[i], r.applier.releasePod(ctx, s, calls, strays[i])
		}
		return strays[i], r.disown(ctx, s, calls, strays[i])
	})
	if _, isStep := errors.AsType[*stepError](err); isStep {
		err = nil // It is logged, and these pods back off. The Job goes on with the others.
	}
	if err != nil || job.DeletionTimestamp != nil {
		return err
	}
	if !s.Clear(tracker.StaleClaims) {
		return nil
	}
	if err := r.adoptAll(ctx, s, calls, job); err != nil {
		s.Mark(tracker.StaleClaims)
		return err
	}
	return nil
}

func (r *reconciler) adoptAll(ctx context.Context, s *tracker.Job, calls *api.Pods, job *batchv1.Job) error {
	var wanted []*podcache.Pod
	for _, pod := range r.podWatch.pods.Uncontrolled(job.Namespace) {
		if _, known := s.Pod(pod.UID); !known && !pod.Deleting && s.Matches(pod) {
			wanted = append(wanted, pod)
		}
	}
	keepRefusals(s, writes.AdoptPod, wanted)
	if len(wanted) == 0 {
		return nil
	}
	// The cache may not show yet that the Job is being deleted. An adopted pod would be
	// deleted with it.
	live, err := r.readJob(ctx, s, job)
	if err != nil || live.DeletionTimestamp != nil {
		return err
	}
	ref := metav1.NewControllerRef(job, jobKind)
	return s.Writes.Patch.Do(ctx, len(wanted), func(ctx context.Context, i int) error {
		return calls.Adopt(ctx, ref, wanted[i], func(pod *podcache.Pod) bool {
			return !pod.Controlled() && !pod.Deleting && s.Matches(pod)
		})
	})
}

// keepRefusals forgets the refused writes of pods that are not to be written any more.
func keepRefusals(s *tracker.Job, k writes.Kind, pods []*podcache.Pod) {
	s.Refusals.Keep(k, func(uid string) bool {
		return slices.ContainsFunc(pods, func(p *podcache.Pod) bool { return string(p.UID) == uid })
	})
}

// disown removes the Job as owner of a pod that its selector does not match any more,
// unless that write is backing off.
func (r *reconciler) disown(ctx context.Context, s *tracker.Job, calls *api.Pods, pod *podcache.Pod) error {
	if !s.MayRelease(pod.UID) {
		return nil
	}
	after, err := calls.Disown(ctx, pod, func(pod *podcache.Pod) bool { return !s.Matches(pod) })
	if err != nil {
		return err
	}
	if after == nil || s.Matches(after) {
		return nil
	}
	if ref, _ := after.ControllingJob(); ref != nil && ref.UID == s.UID {
		r.applier.releaseFailed(ctx, s, after)
	}
	return nil
}
