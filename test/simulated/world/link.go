package world

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// A link connects one executor to the API server.
type link struct {
	*network
	by string
	to http.RoundTripper

	once  sync.Once
	down  chan struct{} // Closed when the network is cut for ever.
	brake brake
}

func (n *network) link(by string, to http.RoundTripper) *link {
	return &link{network: n, by: by, to: to, down: make(chan struct{})}
}

// cut ends everything that is under way, at once and for ever.
func (l *link) cut() { l.once.Do(func() { close(l.down) }) }

func (l *link) isDown() bool {
	select {
	case <-l.down:
		return true
	default:
		return false
	}
}

// travel waits, unless the caller gives up or the network is cut first.
func (l *link) travel(ctx context.Context, d time.Duration) error {
	if l.isDown() {
		return errCut
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.down:
	}
	froze, err := l.pass(ctx)
	switch {
	case l.isDown():
		return errCut
	case err != nil:
		return err
	case froze:
		return nil // What has arrived meanwhile is read before anybody reads the clock.
	}
	return ctx.Err()
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(hr *http.Request) (*http.Response, error) {
	if _, err := l.pass(hr.Context()); err != nil {
		return nil, err
	}
	if l.isDown() {
		return nil, errCut
	}
	r, err := l.read(hr, l.by)
	if err != nil {
		return nil, err
	}
	l.sending(r)
	l.strain()
	ctx := hr.Context()
	if err := l.travel(ctx, r.draw(l.plan.network.request)); err != nil {
		return nil, err
	}
	if l.plan.network.noWatchList && hr.URL.Query().Get("sendInitialEvents") != "" {
		return r.refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"), nil
	}
	f := l.fault(r, func(k faultKind) bool { return !k.ofEngine() && !k.ofWatch() })
	if f == nil {
		resp, err := l.exchange(ctx, r)
		if err == nil && r.resource == "leases" && tellsOfHolder(r.Method, resp.StatusCode) {
			l.readLease(l.by)
		}
		return resp, err
	}
	l.note(l.by, fmt.Sprintf("%s: %s %s", f.kind, r.Method, r.URL.Path))
	return l.fail(ctx, r, f)
}

// tellsOfHolder reports whether an answer tells an executor that somebody has the lease: it has
// read the lease, or it could not create the lease because there is one.
func tellsOfHolder(method string, code int) bool {
	return method == http.MethodGet && code == http.StatusOK || method == http.MethodPost && code == http.StatusConflict
}

// exchange delivers a request and brings back the answer.
func (l *link) exchange(ctx context.Context, r *request) (*http.Response, error) {
	resp, err := r.deliver(l.to, l.plan.network.longWatches || l.isCalm())
	if err != nil {
		return nil, err
	}
	if l.inspect(r, resp) {
		l.quotaHinders(namespaceOf(r.URL.Path), time.Now())
	} else if resp.StatusCode >= http.StatusBadRequest {
		l.hindered(namespaceOf(r.URL.Path), time.Now(), recovers)
	}
	resp.Header["Date"] = []string{l.date()}
	if r.watch && resp.StatusCode == http.StatusOK {
		l.follow(ctx, r, resp)
		return resp, nil
	}
	if l.isDown() {
		resp.Body.Close()
		return nil, errCut
	}
	if err := l.travel(ctx, r.draw(l.plan.network.request)); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return l.remember(r, resp)
}

// inspect looks for statuses that the API server refuses as invalid: no executor may write one. It also looks for answers to
// the creation of pods, and says whether a quota refused one.
func (l *link) inspect(r *request, resp *http.Response) (quotaRefused bool) {
	creates, invalid := r.resource == "pods" && r.Method == http.MethodPost, resp.StatusCode == http.StatusUnprocessableEntity
	if !creates && !invalid {
		return false
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil && invalid {
		l.refused(l.by, r.Method, r.resource, statusMessage(body))
	}
	if err == nil && creates {
		quotaRefused = l.createsPod(r, resp.StatusCode, body)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return quotaRefused
}

// statusMessage is what an answer of the API server says in words.
func statusMessage(body []byte) string {
	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
	if st, ok := object.(*metav1.Status); ok && err == nil {
		return st.Message
	}
	return string(body)
}

// remember keeps the first answer to each list that may be served from the cache.
func (l *link) remember(r *request, resp *http.Response) (*http.Response, error) {
	if r.Method != http.MethodGet || r.URL.Query().Get("resourceVersion") != "0" || resp.StatusCode != http.StatusOK {
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	contentType := resp.Header.Get("Content-Type")
	if l.lists[r.URL.Path] == nil {
		l.lists[r.URL.Path] = &list{contentType, body}
	}
	return r.respond(http.StatusOK, contentType, body), nil
}
