package world

import (
	"bytes"
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fail lets a request fail.
func (l *link) fail(ctx context.Context, r *request, f *fault) (*http.Response, error) {
	switch f.kind {
	case lostRequest:
		if err := l.travel(ctx, r.draw(f.delay)); err != nil {
			return nil, err
		}
		return nil, errReset
	case lostAnswer:
		return l.discard(ctx, r, f, func() (*http.Response, error) { return nil, errReset })
	case timedOutDone:
		return l.discard(ctx, r, f, func() (*http.Response, error) { return r.tooLate(), nil })
	case lateRequest:
		if err := l.travel(ctx, r.draw(f.delay)); err != nil {
			return nil, err
		}
	case lateEffect:
		time.AfterFunc(r.draw(f.delay), func() {
			if resp, err := r.deliver(l.to, false); err == nil {
				resp.Body.Close()
			}
		})
		return nil, errReset
	case lateAnswer:
		resp, err := l.exchange(ctx, r)
		if err != nil || r.watch {
			return resp, err
		}
		if err := l.travel(ctx, r.draw(f.delay)); err != nil {
			resp.Body.Close()
			return nil, err
		}
		return resp, nil
	case hangs:
		if err := l.travel(ctx, r.draw(f.delay)); err != nil {
			return nil, err
		}
		return r.refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error occurred: failed calling webhook: context deadline exceeded"), nil
	case altering:
		r.alter(f)
		if f.unanswered {
			return l.discard(ctx, r, f, func() (*http.Response, error) { return nil, errReset })
		}
	case putBack:
		r.keepFinalizers()
	case staleList:
		if resp := l.stale(r); resp != nil {
			return resp, nil
		}
	default:
		if resp := r.refuse(f.kind); resp != nil {
			if err := l.travel(ctx, r.draw(l.plan.network.request)); err != nil {
				return nil, err
			}
			return resp, nil
		}
	}
	return l.exchange(ctx, r)
}

// hidesOutcome reports whether the sender of a write that fails in this way cannot know
// whether it took effect.
func (k faultKind) hidesOutcome() bool {
	switch k {
	case lostRequest, lostAnswer, lateEffect, serverError, unavailable, timedOut, timedOutDone, hangs:
		return true
	}
	return false
}

// releasing occurs in each patch that removes finalizers.
const releasing = "$deleteFromPrimitiveList/finalizers"

// keepFinalizers changes a patch like an admission webhook that puts finalizers back: the
// rest of the patch takes effect, and the answer shows the finalizers.
func (r *request) keepFinalizers() {
	r.body = bytes.Replace(r.body, []byte(releasing), []byte("$deleteFromPrimitiveList/nothing"), 1)
}

// discard delivers a request, and returns another answer.
func (l *link) discard(ctx context.Context, r *request, f *fault, answer func() (*http.Response, error)) (*http.Response, error) {
	if r.watch {
		return l.exchange(ctx, r)
	}
	resp, err := r.deliver(l.to, false)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	if err := l.travel(ctx, r.draw(f.delay)); err != nil {
		return nil, err
	}
	return answer()
}

// stale is an older answer to the same list, if there is one.
func (l *link) stale(r *request) *http.Response {
	if r.Method != http.MethodGet || r.watch || r.URL.Query().Get("resourceVersion") != "0" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.lists[r.URL.Path]; known != nil {
		return r.respond(http.StatusOK, known.contentType, known.body)
	}
	return nil
}

func (r *request) tooLate() *http.Response {
	return r.refusal(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: request did not complete within requested timeout")
}

// named reports whether a request names the version from which it reads; that may be too old.
func (r *request) named() bool {
	version := r.URL.Query().Get("resourceVersion")
	return r.Method == http.MethodGet && version != "" && version != "0"
}

// refuse is the answer to a request that is not executed; nil if the API server has no
// such answer.
func (r *request) refuse(k faultKind) *http.Response {
	write := r.Method != http.MethodGet
	switch {
	case k == conflict && r.Method == http.MethodPost:
		return r.refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists, "object already exists")
	case k == conflict && write:
		return r.refusal(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified; please apply your changes to the latest version and try again")
	case k == forbidden && write:
		return r.refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: exceeded quota: drawn")
	case k == guarded && write:
		return r.refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: a policy guards this object")
	case k == invalid && write:
		return r.refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "admission webhook denied the request")
	case k == expired && r.named():
		return r.refusal(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
	case k == throttled:
		return r.refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later")
	case k == serverError:
		return r.refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error occurred: drawn")
	case k == unavailable:
		return r.refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down")
	case k == timedOut:
		return r.tooLate()
	}
	return nil
}
