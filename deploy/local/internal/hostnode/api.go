package hostnode

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // reads PodLogOptions of a query
)

// api is the part of the kubelet's HTTPS API that the API server calls for kubectl logs.
type api struct {
	agent  *agent
	layout layout
	logger *slog.Logger
}

func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("GET /pods", a.listPods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", a.containerLogs)
	for _, name := range []string{"exec", "attach", "portForward", "run"} {
		mux.HandleFunc("/"+name+"/", unavailable(name))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "a host-process node does not serve "+r.URL.Path, http.StatusNotImplemented)
	})
	return mux
}

func unavailable(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		text := name + " is not available: a host-process node runs ordinary processes, use this machine's own tools on them"
		http.Error(w, text, http.StatusNotImplemented)
	}
}

// tlsConfig serves the node's certificate and demands a client certificate of the cluster's authority.
func (c Config) tlsConfig() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(c.ServingCertFile, c.ServingKeyFile)
	if err != nil {
		return nil, inField("ServingCertFile, ServingKeyFile", err)
	}
	pem, err := os.ReadFile(c.ClientCAFile)
	if err != nil {
		return nil, inField("ClientCAFile", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, inField("ClientCAFile", fmt.Errorf("no certificate in %s", c.ClientCAFile))
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    authorities,
	}, nil
}

func (a *api) listPods(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(a.agent.pods()); err != nil {
		a.logger.Debug("pod list was not sent", "error", err)
	}
}

func (a *api) containerLogs(w http.ResponseWriter, r *http.Request) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	want := &corev1.PodLogOptions{} // The API server passes it on and has validated it.
	if err := legacyscheme.ParameterCodec.DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, want); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if want.Stream != nil && *want.Stream != corev1.LogStreamAll {
		http.Error(w, fmt.Sprintf("stream %q: both streams are kept as one here, only All can be asked for", *want.Stream), http.StatusBadRequest)
		return
	}
	worker, ok := a.agent.worker(namespace, name)
	if !ok {
		http.Error(w, fmt.Sprintf("pod %q does not exist in namespace %q on this node", name, namespace), http.StatusNotFound)
		return
	}
	attempt, live, err := worker.view.find(name, container, want.Previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := a.layout.log(worker.uid, container, attempt)
	if _, err := os.Stat(path); err != nil {
		http.Error(w, fmt.Sprintf("the log of container %q in pod %q is no longer there", container, name), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := flushing{w}
	_, err = out.Write(nil)
	if err = errors.Join(err, readLog(r.Context(), path, live, want, out)); err != nil {
		a.logger.Debug("log was not sent", "namespace", namespace, "pod", name, "container", container, "error", err)
	}
}
