package probes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A stuck client never takes its answer.
type stuck struct{ *httptest.ResponseRecorder }

func (stuck) Write([]byte) (int, error) { select {} }

func TestAnswersAreMadeOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int32
		h := oneAtATime(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			most.Store(max(most.Load(), under.Add(1)))
			time.Sleep(time.Second)
			under.Add(-1)
			w.Header().Set("X-Made", "yes")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "made")
		}))
		began := time.Now()
		var wait sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 10)
		for i := range answers {
			answers[i] = httptest.NewRecorder()
			wait.Go(func() {
				h.ServeHTTP(answers[i], httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
			})
		}
		wait.Wait()
		if most.Load() != 1 {
			t.Errorf("%d answers were made at a time, want 1", most.Load())
		}
		// Each answer takes a second, and a rest follows each but the last.
		if took, want := time.Since(began), 10*time.Second+9*maxRest; took != want {
			t.Errorf("10 answers took %s, want %s", took, want)
		}
		for _, w := range answers {
			if w.Code != http.StatusTeapot || w.Header().Get("X-Made") != "yes" || w.Body.String() != "made" {
				t.Errorf("answer %d %v %q, want what the handler wrote", w.Code, w.Header(), w.Body)
			}
		}
	})
}

func TestWhoDoesNotReadKeepsNobodyWaiting(t *testing.T) {
	h := oneAtATime(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "made") }))
	request := func() *http.Request {
		return httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	}
	go h.ServeHTTP(stuck{httptest.NewRecorder()}, request())
	time.Sleep(10 * time.Millisecond) // It probably has its answer by now.
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request())
	if w.Body.String() != "made" {
		t.Errorf("answer %q, want made", w.Body)
	}
}
