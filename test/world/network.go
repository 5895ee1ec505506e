package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errReset = errors.New("connection reset by peer")
	errCut   = errors.New("network is unreachable")
)

func itoa(n int) string { return strconv.Itoa(n) }

// A network carries requests of executors to the API server and back, or fails
// to, as the plan says.
type network struct {
	seed  uint64
	plan  *plan
	begun time.Time
	// sending is told each request of an executor, in the moment it is sent.
	sending func(n uint64)
	note    func(who, text string)
	refused func(by, verb, resource, message string)
	runAway func() // There is no end to requests.
	telling func() bool
	// disturbed is told of each fault.
	disturbed func()

	mu       sync.Mutex
	calm     bool
	sent     map[uint64]uint64
	requests uint64
	work     int
	lists    map[string]*list // The first answer to each list from the cache.
	happened map[faultKind]int
}

// A list is an answer that may be given again.
type list struct {
	contentType string
	body        []byte
}

func newNetwork(p *plan, begun time.Time, note func(who, text string)) *network {
	return &network{
		seed: p.seed, plan: p, begun: begun, note: note, sending: func(uint64) {},
		sent: map[uint64]uint64{}, lists: map[string]*list{}, happened: map[faultKind]int{},
	}
}

// end stops all faults.
func (n *network) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calm = true
}

// fault is what befalls the request, or nil.
func (n *network) fault(r *request, fits func(faultKind) bool) *fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calm {
		return nil
	}
	now := time.Since(n.begun)
	for _, f := range n.plan.faults {
		if now < f.from || now >= f.to || !fits(f.kind) || !f.concerns(r) || r.IntN(100) >= f.percent {
			continue
		}
		n.happened[f.kind]++
		n.disturbed()
		return f
	}
	return nil
}

// concerns reports whether requests like that one may fail so.
func (f *fault) concerns(r *request) bool {
	if f.verb != "" && f.verb != r.Method {
		return false
	}
	if f.kind == putBack && !bytes.Contains(r.body, []byte(releasing)) {
		return false
	}
	base := r.resource
	for i := range base {
		if base[i] == '/' {
			base = base[:i]
			break
		}
	}
	return f.resource == "" || f.resource == base
}

// mostWork is how many requests and questions there may be in a world; in one that
// goes on for weeks, some for each hour, because Jobs at rest are asked about.
func (p *plan) mostWork() int { return 20_000 + 100*int(p.calm/time.Hour) }

// strain counts requests and questions. Who sends too many will never stop.
func (l *link) strain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work++; l.work == l.plan.mostWork() {
		l.runAway()
	}
	if l.work >= l.plan.mostWork() {
		l.cut()
	}
}

// runaway reports whether there was no end to requests.
func (n *network) runaway() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.work >= n.plan.mostWork()
}

// A link is the way of one executor to the API server.
type link struct {
	*network
	by string
	to http.RoundTripper

	once sync.Once
	down chan struct{} // Closed when the network is cut, for ever.
}

func (n *network) link(by string, to http.RoundTripper) *link {
	return &link{network: n, by: by, to: to, down: make(chan struct{})}
}

// cut ends everything that is on its way, at once and for ever.
func (l *link) cut() { l.once.Do(func() { close(l.down) }) }

func (l *link) isDown() bool {
	select {
	case <-l.down:
		return true
	default:
		return false
	}
}

// travel waits, unless the caller gives up or the network is cut before.
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
	if l.isDown() {
		return errCut
	}
	return ctx.Err()
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(hr *http.Request) (*http.Response, error) {
	if l.isDown() {
		return nil, errCut
	}
	r, err := l.read(hr, l.by)
	if err != nil {
		return nil, err
	}
	l.sending(r.n)
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
		return l.exchange(ctx, r)
	}
	l.note(l.by, fmt.Sprintf("%s: %s %s", f.kind, r.Method, r.URL.Path))
	return l.fail(ctx, r, f)
}

// exchange delivers a request and brings back the answer.
func (l *link) exchange(ctx context.Context, r *request) (*http.Response, error) {
	resp, err := r.deliver(l.to, l.plan.network.longWatches)
	if err != nil {
		return nil, err
	}
	l.hear(r, resp)
	resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
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

// hear listens for statuses that the API server finds invalid: none of ours is.
func (l *link) hear(r *request, resp *http.Response) {
	if resp.StatusCode != http.StatusUnprocessableEntity {
		return
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil {
		l.refused(l.by, r.Method, r.resource, string(body))
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
}

// remember keeps the first answer to each list that need not be new.
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

// releasing stands in a patch that takes finalizers away.
const releasing = "$deleteFromPrimitiveList/finalizers"

// keepFinalizers makes a patch what an admission webhook makes of it that puts
// finalizers back: the rest of it takes effect, and the answer shows them.
func (r *request) keepFinalizers() {
	r.body = bytes.Replace(r.body, []byte(releasing), []byte("$deleteFromPrimitiveList/nothing"), 1)
}

// discard delivers a request, and answers something else.
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

// named reports whether a request reads from a certain version on, which may be too
// old.
func (r *request) named() bool {
	version := r.URL.Query().Get("resourceVersion")
	return r.Method == http.MethodGet && version != "" && version != "0"
}

// refuse is the answer to a request that is not carried out; nil if the API server
// has no such answer to it.
func (r *request) refuse(k faultKind) *http.Response {
	write := r.Method != http.MethodGet
	switch {
	case k == conflict && r.Method == http.MethodPost:
		return r.refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists, "object already exists")
	case k == conflict && write:
		return r.refusal(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified; please apply your changes to the latest version and try again")
	case k == forbidden && write:
		return r.refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: exceeded quota: drawn")
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
