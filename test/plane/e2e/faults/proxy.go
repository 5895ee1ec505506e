package faults

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A Proxy stands between one executor and the API server. It shows the executor only
// one namespace: it restricts lists and watches of the whole cluster to it, so that
// executors of parallel tests do not meet.
//
// Without rules a proxy changes nothing else. The latest rule that matches a call
// decides.
type Proxy struct {
	server    *httptest.Server
	upstream  *httputil.ReverseProxy
	namespace string
	closed    chan struct{}

	mu      sync.Mutex
	rules   []*Rule
	log     []Record
	watches map[string]*watches
}

// NewProxy starts a proxy to the API server of cfg, with the rights that cfg
// has. Close ends it.
func NewProxy(cfg *rest.Config, namespace string) (*Proxy, error) {
	target, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, err
	}
	p := &Proxy{namespace: namespace, closed: make(chan struct{}), watches: map[string]*watches{}}
	p.upstream = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target); p.narrow(r.Out.URL) },
		Transport:      transport,
		ModifyResponse: p.gateWatch,
		// An upstream call fails when its executor dies or a watch is cut.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	return p, nil
}

// Close ends all calls and the proxy.
func (p *Proxy) Close() {
	close(p.closed)
	p.CutWatches("")
	p.server.CloseClientConnections()
	p.server.Close()
}

// Kubeconfig writes a kubeconfig file for the proxy, and returns its path.
func (p *Proxy) Kubeconfig(dir string) (string, error) {
	const name = "proxy"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   p.server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}),
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	config.CurrentContext = name
	file := filepath.Join(dir, "kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

// narrow redirects lists and watches of all namespaces to the proxy's namespace.
func (p *Proxy) narrow(u *url.URL) {
	switch u.Path {
	case "/api/v1/pods":
		u.Path = "/api/v1/namespaces/" + p.namespace + "/pods"
	case "/apis/batch/v1/jobs":
		u.Path = "/apis/batch/v1/namespaces/" + p.namespace + "/jobs"
	}
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := callOf(r)
	if call.Verb == "watch" {
		p.serveWatch(w, r, call)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // The executor has gone.
	}
	record := Record{Call: call}
	defer func() { p.note(record) }()
	x := &Exchange{Call: call, w: w, r: r, closed: p.closed, forward: func(w http.ResponseWriter) {
		answer := &codeRecorder{ResponseWriter: w}
		defer func() { record.Code = answer.code }()
		out := r.Clone(context.WithoutCancel(r.Context()))
		out.Body = io.NopCloser(bytes.NewReader(body))
		p.upstream.ServeHTTP(answer, out)
	}}
	fault := p.faultFor(call)
	if fault == nil {
		x.forward(w)
		return
	}
	fault(x)
}

// A codeRecorder remembers the status code that went through it.
type codeRecorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (c *codeRecorder) WriteHeader(code int) {
	c.code = code
	c.ResponseWriter.WriteHeader(code)
}

func (p *Proxy) note(r Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, r)
}

// Calls returns the completed calls that match, in the order of their ends, without
// watches.
func (p *Proxy) Calls(m Match) []Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.log), func(r Record) bool { return !m.fits(r.Call) })
}
