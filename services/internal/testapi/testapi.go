// Package testapi is as much of a Kubernetes API server as a program needs to
// start: no Jobs, no CronJobs, no pods, no namespaces, and Leases that can be held.
package testapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test}}]
current-context: test
`

// Server is the API server. It ends with the test.
type Server struct {
	// Kubeconfig names a file.
	Kubeconfig string
	// HoldLists, while true, keeps objects from being listed.
	HoldLists atomic.Bool
	// RefuseRenewals, while true, keeps Leases from being written.
	RefuseRenewals atomic.Bool

	lease atomic.Pointer[coordinationv1.Lease]
}

// Start starts one.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/batch/v1/jobs", s.empty("batch/v1", "Job"))
	mux.HandleFunc("GET /apis/batch/v1/cronjobs", s.empty("batch/v1", "CronJob"))
	mux.HandleFunc("GET /api/v1/pods", s.empty("v1", "Pod"))
	mux.HandleFunc("GET /api/v1/namespaces", s.empty("v1", "Namespace"))
	mux.HandleFunc("GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}", s.readLease)
	mux.HandleFunc("POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases", s.writeLease)
	mux.HandleFunc("PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}", s.writeLease)
	web := httptest.NewServer(mux)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	if err := os.WriteFile(s.Kubeconfig, fmt.Appendf(nil, kubeconfig, web.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Holder is who holds the lease; empty if nobody does.
func (s *Server) Holder() string {
	lease := s.lease.Load()
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// empty answers lists and watches of a kind of which there is nothing.
func (s *Server) empty(version, kind string) http.HandlerFunc {
	meta := map[string]any{"resourceVersion": "1"}
	list := map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": meta, "items": []any{}}
	bookmark := map[string]any{"type": "BOOKMARK", "object": map[string]any{
		"apiVersion": version, "kind": kind,
		"metadata": map[string]any{
			"resourceVersion": "1", "creationTimestamp": nil,
			"annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	}}
	return func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case s.HoldLists.Load():
			fail(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		case query.Get("watch") == "":
			answer(w, http.StatusOK, list)
		default:
			w.Header().Set("Content-Type", "application/json")
			if query.Get("sendInitialEvents") == "true" {
				_ = json.NewEncoder(w).Encode(bookmark)
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
}

func (s *Server) readLease(w http.ResponseWriter, _ *http.Request) {
	lease := s.lease.Load()
	if lease == nil {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	answer(w, http.StatusOK, lease)
}

func (s *Server) writeLease(w http.ResponseWriter, r *http.Request) {
	if s.RefuseRenewals.Load() {
		fail(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	lease, ok := obj.(*coordinationv1.Lease)
	if err != nil || !ok {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	lease.APIVersion, lease.Kind = "coordination.k8s.io/v1", "Lease"
	s.lease.Store(lease)
	answer(w, http.StatusOK, lease)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer(w, code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Message: "the test wants it so", Code: int32(code),
	})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client went away
}
