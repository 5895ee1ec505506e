package api

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var (
	// ErrGone: the object does not exist any more. There may be another one of its name.
	ErrGone = errors.New("object is gone")
	// ErrChanged: the object has another version than the one to write.
	ErrChanged = errors.New("object has changed since the decision")
	// ErrNamespaceTerminating: nothing can be created in the namespace, because it is being
	// deleted. Nobody has to act on that.
	ErrNamespaceTerminating = errors.New("namespace is terminating")
	// ErrPodEnded: a pod that was to be deleted uncounted has ended by itself.
	ErrPodEnded = errors.New("pod has ended")
	// ErrPodStarted: a pod that was to be deleted because it does not start has started.
	ErrPodStarted = errors.New("pod has started")
	// ErrPutBack: a finalizer was removed, and somebody (an admission webhook) put it
	// back in the same request.
	ErrPutBack = errors.New("finalizer was put back")
	// ErrDropped: a pod was given less time, and somebody (an admission webhook) dropped that from the
	// same request.
	ErrDropped = errors.New("active deadline was dropped")
)

// OutcomeUnknown reports whether a failed write may have taken effect all the same:
// no answer came, or one that the server gives when it does not know.
func OutcomeUnknown(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return status.Status().Code >= http.StatusInternalServerError || status.Status().Reason == metav1.StatusReasonTimeout
}

// answered reports whether an error is an answer of the server.
func answered(err error) bool { return errors.As(err, new(apierrors.APIStatus)) }

// Refused reports whether the API server has refused a write of one object, as a policy, an
// admission webhook or a missing permission does: the same write will be refused again until
// somebody changes that. Answers that concern every object or pass by themselves are no
// refusals: the server is overloaded or fails, the credentials have expired, the object has
// changed, the namespace is being deleted.
func Refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Reason == metav1.StatusReasonTimeout || NamespaceTerminating(err) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// refusalOf is the text of the answer with which the API server has refused a write; empty if it has
// not. In contrast to Refused, it takes in conflicts, with which a webhook may refuse, too, and internal
// errors, such as that of a webhook that cannot be called, and objects that admission has changed.
func refusalOf(err error) string {
	var status apierrors.APIStatus
	var altered *AlteredError
	switch {
	case errors.As(err, &altered):
		return altered.Error()
	case errors.Is(err, ErrPutBack):
		return ErrPutBack.Error() + ", as an admission webhook does"
	case errors.Is(err, ErrDropped):
		return ErrDropped.Error() + ", as an admission webhook does"
	case NamespaceTerminating(err) || !errors.As(err, &status):
		return ""
	case Refused(err) || apierrors.IsConflict(err) || status.Status().Reason == metav1.StatusReasonInternalError:
		return cmp.Or(status.Status().Message, err.Error())
	}
	return ""
}

// NamespaceTerminating reports whether an object was refused because its namespace is
// being deleted.
func NamespaceTerminating(err error) bool {
	return errors.Is(err, ErrNamespaceTerminating) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// quotaRefused reports whether the API server has refused a pod because of a ResourceQuota that may have room for it
// later: the quota is used up, its usage is not known yet, or too many change its usage at once. For the first two there
// is no reason or cause of its own beside Forbidden, so the message decides.
func quotaRefused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	switch message, of := status.Status().Message, status.Status().Details.Kind; {
	case of == "pods" && apierrors.IsForbidden(err):
		return writes.ExceedsQuota(message) || strings.Contains(message, "status unknown for quota")
	default:
		return of == "resourcequotas" && apierrors.IsConflict(err)
	}
}

// QuotaDelay shortens the delay after a failed creation of pods to what the Job's options allow if a quota was
// the cause.
func QuotaDelay(delay time.Duration, options *jobpolicyv1.JobOptions, cause error) time.Duration {
	longest := time.Duration(options.GetRetryDelay().GetQuotaMaxSeconds()) * time.Second
	if longest == 0 || !quotaRefused(cause) {
		return delay
	}
	return min(delay, longest)
}
