package testenv

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test}}]
current-context: test
`

// Kubeconfig makes a kubeconfig file for the API server at an address.
func Kubeconfig(t testing.TB, address string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "kubeconfig")
	WriteFile(t, file, fmt.Sprintf(kubeconfig, address))
	return file
}

// A Door is an address of an API. By the Door a test knows who has sent a request. It
// ends with the test.
type Door struct {
	// Kubeconfig names a file.
	Kubeconfig string

	handler http.Handler
	release chan struct{}
	hangs   atomic.Bool

	mu     sync.Mutex
	writes []string
}

// Door opens another Door.
func (s *API) Door(t testing.TB) *Door {
	t.Helper()
	d := &Door{handler: s.handler, release: make(chan struct{})}
	web := httptest.NewServer(d)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	d.Kubeconfig = Kubeconfig(t, web.URL)
	return d
}

// Writes are the write requests that were received completely, except those of Leases.
func (d *Door) Writes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.writes)
}

// HangLeases gives no more answers about Leases.
func (d *Door) HangLeases() { d.hangs.Store(true) }

// Answer answers all writes, those received so far and later ones.
func (d *Door) Answer() { close(d.release) }

// ServeHTTP implements http.Handler. Writes wait for Answer, and then fail with an error
// after which a client may try again.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.hangs.Load() && strings.Contains(r.URL.Path, "/leases") {
		_, _ = io.ReadAll(r.Body) // The end of the connection is noticed only after that.
		<-r.Context().Done()
		return
	}
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/leases") {
		d.handler.ServeHTTP(w, r)
		return
	}
	if _, err := io.ReadAll(r.Body); err != nil {
		return // An incomplete request has no effect.
	}
	d.mu.Lock()
	d.writes = append(d.writes, r.Method+" "+r.URL.Path)
	d.mu.Unlock()
	select {
	case <-d.release:
		fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case <-r.Context().Done():
	}
}
