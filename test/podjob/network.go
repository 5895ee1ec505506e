package podjob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// controllerName is who makes the requests of the controller under test.
const controllerName = "training-controller"

// What may happen to a request. An empty fault: it is served.
const (
	neverArrives    = "a request is lost"
	answerIsLost    = "an answer is lost"
	takesEffectLate = "a request takes effect late, and its answer is lost"
	internalError   = "the server answers 500"
	conflicts       = "the server answers 409"
	throttled       = "the server answers 429"
	quotaExceeded   = "a quota refuses a pod"
	statusConflicts = "a status conflicts"
	engineFails     = "the engine does not answer"
	finalizerKept   = "a webhook puts the finalizer back"
)

var faults = []string{
	neverArrives, answerIsLost, takesEffectLate, internalError, conflicts, throttled, quotaExceeded, statusConflicts, engineFails, finalizerKept,
}

var errNoAnswer = errors.New("no answer")

// fault draws what happens to a request, by its method; "status" is a write of a status, and
// "engine" a call of the engine.
func (w *world) fault(method string) (drawn string) {
	defer func() {
		if drawn != "" {
			w.came(drawn)
		}
	}()
	if w.calm() {
		return ""
	}
	if method == http.MethodPost && w.during(w.plan.quotas) {
		return quotaExceeded
	}
	if !w.chance(w.plan.failing) {
		return ""
	}
	switch method {
	case "engine":
		return engineFails
	case "status":
		return pick(w.drawer, neverArrives, answerIsLost, takesEffectLate, statusConflicts)
	case http.MethodGet:
		return pick(w.drawer, neverArrives, internalError, throttled)
	case http.MethodPost:
		return pick(w.drawer, neverArrives, answerIsLost, takesEffectLate, internalError, throttled)
	}
	return pick(w.drawer, neverArrives, answerIsLost, takesEffectLate, internalError, throttled, conflicts)
}

// during reports whether one of the windows is open.
func (w *world) during(windows []window) bool {
	for _, window := range windows {
		if window.contains(time.Since(w.began)) {
			return true
		}
	}
	return false
}

// ask asks the engine.
func (w *world) ask(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	w.pass(w.delay())
	if w.fault("engine") != "" {
		return nil, errNoAnswer
	}
	return engine.DecideJob(req)
}

// A link carries the controller's requests to the API server (http.RoundTripper).
type link struct {
	*world
	life int // Of which life of the controller it is.
}

// errDead ends what a controller does that was killed.
var errDead = errors.New("the controller was killed")

// RoundTrip implements http.RoundTripper.
func (l link) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	l.judge.sends(r)
	l.pass(l.delay())
	l.race(r, body)
	if l.life != l.lives {
		return nil, errDead
	}
	fault := l.fault(r.Method)
	if r.Method == http.MethodPost {
		l.judge.creates(body, fault)
	}
	l.notef("%s %s %s", r.Method, r.URL.Path, fault)
	switch fault {
	case "":
		resp, err := l.deliver(r, body)
		l.pass(l.delay())
		return resp, err
	case answerIsLost:
		l.drop(r, body)
	case takesEffectLate:
		views := l.judge.views()
		l.after(l.within(100*time.Millisecond, 20*time.Second), func() {
			l.judge.late(views, func() { l.drop(r.WithContext(context.Background()), body) })
		})
	case internalError:
		return refusal(r, http.StatusInternalServerError, metav1.StatusReasonInternalError), nil
	case conflicts:
		return refusal(r, http.StatusConflict, metav1.StatusReasonConflict), nil
	case throttled:
		return refusal(r, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), nil
	case quotaExceeded:
		return refusal(r, http.StatusForbidden, metav1.StatusReasonForbidden), nil
	}
	l.pass(l.delay())
	return nil, errNoAnswer
}

// deliver sends a request to the server, and through a webhook that may put the finalizer back.
func (l link) deliver(r *http.Request, body []byte) (*http.Response, error) {
	if r.Method == http.MethodPatch && l.during(l.plan.webhooks) && l.chance(80) {
		if kept, ok := withFinalizer(body); ok {
			l.came(finalizerKept)
			body = kept
		}
	}
	out := r.Clone(r.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.ContentLength = int64(len(body))
	return l.server.Transport(controllerName).RoundTrip(out)
}

func (l link) drop(r *http.Request, body []byte) {
	if resp, err := l.deliver(r, body); err == nil {
		resp.Body.Close()
	}
}

// withFinalizer takes the removal of finalizers out of a patch.
func withFinalizer(patch []byte) ([]byte, bool) {
	var parsed map[string]map[string]any
	if json.Unmarshal(patch, &parsed) != nil {
		return nil, false
	}
	const key = "$deleteFromPrimitiveList/finalizers"
	if _, removes := parsed["metadata"][key]; !removes {
		return nil, false
	}
	delete(parsed["metadata"], key)
	without, err := json.Marshal(parsed)
	return without, err == nil
}

// race lets somebody act on the pod of a request just before the request arrives.
func (l link) race(r *http.Request, body []byte) {
	raced := l.plan.raced
	if bytes.Contains(body, []byte(`"resourceVersion"`)) {
		raced *= 4 // The request depends on what the controller has seen.
	}
	if l.calm() || !l.chance(raced) {
		return
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	pod := l.pod(types.NamespacedName{Namespace: namespace, Name: name})
	switch {
	case r.Method == http.MethodPost:
		if pod := decodePod(body); pod != nil {
			l.takeName(pod.Name, pod.Annotations[groupAnnotation])
		}
	case pod == nil || r.Method == http.MethodGet || !l.owner.controls(pod):
	case l.chance(40):
		l.came("a pod gets another owner during a Step")
		l.kubelets.takeOver(pod)
	case l.chance(20):
		l.came("a pod is lost during a Step")
		l.kubelets.lose(pod)
	case !ended(pod):
		l.came("a pod ends during a Step")
		l.kubelets.status(pod, setEnded(pick[int32](l.drawer, 0, 0, 1)))
	}
}

func refusal(r *http.Request, code int, reason metav1.StatusReason) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "as drawn",
	})
	if err != nil {
		panic(err) // It is always the same.
	}
	resp := &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
	if code == http.StatusTooManyRequests {
		resp.Header.Set("Retry-After", "1")
	}
	return resp
}

func newClient(transport http.RoundTripper) corev1client.CoreV1Interface {
	config := &rest.Config{Host: "http://api", QPS: -1, ContentConfig: rest.ContentConfig{
		ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
	}}
	client, err := corev1client.NewForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		panic(err) // The configuration is always the same.
	}
	return client
}

func decodePod(body []byte) *corev1.Pod {
	pod := &corev1.Pod{}
	if json.Unmarshal(body, pod) != nil {
		return nil
	}
	return pod
}
