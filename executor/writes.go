package executor

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
)

// apiTimeout bounds one call of the API server, waiting for the client's rate
// limit included.
const apiTimeout = 60 * time.Second

// outcomeUnknown reports whether a failed write may have taken effect all the
// same: no answer came, or one that the server gives when it does not know.
func outcomeUnknown(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return status.Status().Code >= http.StatusInternalServerError || status.Status().Reason == metav1.StatusReasonTimeout
}

func namespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// patchPod sends a strategic merge patch that carries the pod's UID, so that it
// cannot hit another pod of the same name, takes the answer in and returns it; nil
// when the pod does not exist any more.
func (e *Executor) patchPod(ctx context.Context, s *jobState, pod *podcache.Pod, patch []byte) (*podcache.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	s.pods.BeginCall()
	defer s.pods.EndCall()
	patched, err := e.cfg.Client.CoreV1().Pods(pod.Namespace()).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err == nil && !wentWith(patched) {
		if patched.ResourceVersion != pod.ResourceVersion {
			s.progressed()
		}
		return e.absorb(s, patched), nil
	}
	if err == nil {
		s.progressed()
		s.pods.Gone(pod.UID, tracker.Response)
		return nil, nil
	}
	gone, err := e.isGone(ctx, pod, err)
	if gone {
		s.pods.Gone(pod.UID, tracker.Response)
	}
	return nil, err
}

// wentWith reports whether a pod went with the write that this is the answer
// to: its deletion was only waiting for the last finalizer. The answer then
// bears the version from before the write, so it would pass for old news, and
// the pod for one that holds its finalizer still.
func wentWith(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0 && grace != nil && *grace == 0
}

// isGone works out whether a write failed because its pod does not exist any
// more. If not, it returns the error.
func (e *Executor) isGone(ctx context.Context, pod *podcache.Pod, err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		return false, err
	}
	live, readErr := e.cfg.Client.CoreV1().Pods(pod.Namespace()).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(readErr) {
		return true, nil
	}
	if readErr == nil && live.UID != pod.UID {
		return true, nil
	}
	return false, err
}
