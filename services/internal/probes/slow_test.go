package probes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/services/internal/testenv"
)

// deadlined is an answer that remembers its deadline.
type deadlined struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (d *deadlined) SetWriteDeadline(at time.Time) error {
	d.deadline = at
	return nil
}

// A client that does not read its answer is cut off, unless it is on this machine and asks
// for something that may take long, on a connection that it may have used before.
func TestAnswersHaveADeadline(t *testing.T) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	server := New(Config{
		Gatherer: prometheus.NewRegistry(), Logger: (&testenv.Log{}).Logger(), Debug: map[string]http.Handler{"GET /debug/x": nothing},
	})
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/debug/x"} {
		w, before := &deadlined{ResponseRecorder: httptest.NewRecorder(), deadline: time.Now()}, time.Now()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
		r.RemoteAddr = "127.0.0.1:1"
		server.Handler().ServeHTTP(w, r)
		if path == "/debug/x" {
			before = time.Time{}
		} else {
			before = before.Add(answerTimeout)
		}
		if w.Code != http.StatusOK || w.deadline.Before(before) || (before.IsZero() && !w.deadline.IsZero()) {
			t.Errorf("%s: %d, to be read by %v, want %v or a moment later", path, w.Code, w.deadline, before)
		}
	}
}

// A header is held in memory before anything else is known of a request.
func TestLongHeadersAreRefused(t *testing.T) {
	server := New(Config{Gatherer: prometheus.NewRegistry(), Logger: (&testenv.Log{}).Logger()})
	lis := testenv.Listen(t)
	go func() { _ = server.Serve(lis) }() // It ends with Close.
	t.Cleanup(server.Close)
	for lines, want := range map[int]int{100: http.StatusOK, 10_000: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+lis.Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range lines {
			r.Header.Set(fmt.Sprintf("X-%d", i), "")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a header of %d lines: %s, want %d", lines, resp.Status, want)
		}
	}
}
