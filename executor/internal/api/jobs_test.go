package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// An owner reference may have any name that is not empty. A name that no object can have is that of
// a Job that does not exist, as for the built-in controller; the client refuses to ask for it.
func TestNoJobHasANameThatIsNoPathSegment(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("asked for %s", r.URL)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	c := &Client{Kubernetes: kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})}
	for _, name := range []string{"a/b", "..", ".", "50%"} {
		if _, err := c.JobOfName(t.Context(), "default", name); !errors.Is(err, ErrGone) {
			t.Errorf("a Job named %q: error %v, want ErrGone", name, err)
		}
	}
}
