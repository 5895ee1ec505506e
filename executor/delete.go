package executor

import (
	"context"
	"fmt"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// deletePods deletes pods. One that cannot be deleted does not keep the others
// from it.
func (e *Executor) deletePods(ctx context.Context, s *jobState, job *batchv1.Job, deletes []*jobpolicyv1.DeletePod) error {
	var some atomic.Bool
	err := s.deleting.Do(ctx, len(deletes), func(ctx context.Context, i int) error {
		err := e.deletePod(ctx, s, job, deletes[i])
		if err == nil {
			some.Store(true)
		}
		return err
	})
	if some.Load() {
		s.endHold(&s.deleteHold)
	}
	return err
}

// deletePod deletes one pod. A pod that does not exist any more is deleted.
func (e *Executor) deletePod(ctx context.Context, s *jobState, job *batchv1.Job, d *jobpolicyv1.DeletePod) (err error) {
	uid, err := wire.UIDString(d.GetUid())
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	pod, known := s.pods.Pod(uid)
	if !known {
		return nil
	}
	ctx, end := e.span(ctx, SpanPodDeleted, AttrPodName.String(pod.Name), AttrPodUID.String(string(uid)))
	defer func() { end(err) }()
	if d.GetReleaseFirst() && pod.Held {
		gone, err := e.releaseRunning(ctx, s, pod)
		if err != nil {
			return fmt.Errorf("releasing before deletion: %w", err)
		}
		if gone {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	err = e.cfg.Client.CoreV1().Pods(pod.Namespace()).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err == nil {
		s.pods.Deleted(uid, e.cfg.Now())
		s.progressed()
		e.podEvent(s, job, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
		return nil
	}
	gone, err := e.isGone(ctx, pod, err)
	if gone {
		s.pods.Gone(uid, tracker.Response)
		return nil
	}
	e.podEvent(s, job, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
	return err
}
