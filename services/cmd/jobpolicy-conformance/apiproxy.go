package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/services/internal/loopback"
)

// errAnswerLost is why the answer to a write is not passed on.
var errAnswerLost = errors.New("the answer is lost, on purpose")

// An apiProxy is a proxy between the caller and its API server. It tells a clusterWatcher when
// each write begins and ends, and drops the answers that the watcher chooses: the write takes
// effect, but the caller does not learn of it.
type apiProxy struct {
	watcher *clusterWatcher
	reverse httputil.ReverseProxy
}

// startAPIProxy serves an apiProxy until ctx ends. The address is local, because clients of the
// proxy need no certificate.
func startAPIProxy(ctx context.Context, kubeconfig, listen string, w *clusterWatcher) (net.Addr, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	p, err := newAPIProxy(cfg, w)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("--api-listen: %w", err)
	}
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		_ = listener.Close()
		return nil, fmt.Errorf("--api-listen must be an address of this machine alone, such as localhost:8001, is %s", listen)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return listener.Addr(), nil
}

func newAPIProxy(cfg *rest.Config, w *clusterWatcher) (*apiProxy, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.DisableCompression = true
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, err
	}
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	p := &apiProxy{watcher: w}
	p.reverse = httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // Watches need it.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Accept-Encoding", "identity")
			r.Out.Header.Set("Accept", readable(r.In.Header.Get("Accept")))
		},
		ModifyResponse: p.ended,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return p, nil
}

// readable removes protobuf from an Accept header, so that answers are JSON.
func readable(accept string) string {
	var kept []string
	for _, kind := range strings.Split(accept, ",") {
		if !strings.Contains(kind, "protobuf") {
			kept = append(kept, kind)
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

type writeKey struct{}

// ServeHTTP implements http.Handler. The proxy adds the credentials of the kubeconfig to each
// request, so it serves no page of another site that a browser on this machine shows.
func (p *apiProxy) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if err := loopback.Refusal(r); err != nil {
		http.Error(rw, err.Error(), http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // An incomplete request has no effect.
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		w := newClusterWrite(r, body)
		p.watcher.begun(w)
		defer p.watcher.closed(w)
		r = r.WithContext(context.WithValue(r.Context(), writeKey{}, w))
	}
	p.reverse.ServeHTTP(rw, r)
}

// ended shows an answer to the watcher before it is passed on.
func (p *apiProxy) ended(resp *http.Response) error {
	w, isWrite := resp.Request.Context().Value(writeKey{}).(*clusterWrite)
	if !isWrite {
		resp.Body = &shownBody{ReadCloser: resp.Body, watcher: p.watcher}
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if p.watcher.ended(w, resp.StatusCode, body) {
		return errAnswerLost
	}
	return nil
}

// A clusterWrite is a write request to the API server.
type clusterWrite struct {
	method, resource, name string
	pod                    *corev1.Pod     // The pod that it creates.
	deleted                *clusterPod     // The pod that it deletes, if the last answer decided that.
	at                     int             // When it began (clusterWatcher.clock).
	beside                 []*clusterWrite // Creations and deletions that had no answer when it began.
	done                   bool
}

// newClusterWrite reads the kind and name from the path, and a pod that is created from the
// body.
func newClusterWrite(r *http.Request, body []byte) *clusterWrite {
	w := &clusterWrite{method: r.Method}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) > 0 && parts[0] == "api" {
		parts = parts[min(2, len(parts)):]
	} else {
		parts = parts[min(3, len(parts)):]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) > 0 {
		w.resource = parts[0]
	}
	if len(parts) > 1 {
		w.name = parts[1]
	}
	if w.creates() {
		if object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
			w.pod, _ = object.(*corev1.Pod)
		}
	}
	return w
}

func (w *clusterWrite) creates() bool {
	return w.method == http.MethodPost && w.resource == "pods" && w.name == ""
}

func (w *clusterWrite) deletes() bool { return w.method == http.MethodDelete && w.resource == "pods" }

// An object is the part of an answer that the proxy reads. The answer to a deletion may be
// a Status instead, which has no UID.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            any `json:"status"`
}

func readObject(body []byte) *object {
	o := &object{}
	if json.Unmarshal(body, o) != nil || o.UID == "" {
		return nil
	}
	return o
}

// A shownBody looks for pods in what the caller reads.
type shownBody struct {
	io.ReadCloser
	watcher *clusterWatcher
	tail    []byte // The end of what was read: a name may be split between two reads.
}

func (b *shownBody) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	if n > 0 {
		b.tail = append(b.tail, p[:n]...)
		b.watcher.shown(b.tail)
		b.tail = append(b.tail[:0], b.tail[max(0, len(b.tail)-maxName):]...)
	}
	return n, err
}

// maxName is longer than any name.
const maxName = 256
