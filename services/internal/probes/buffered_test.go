package probes

import (
	"context"
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

// A client with many requests delays those of another address by one answer.
func TestAddressesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []string
		h := oneAtATime(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			made = append(made, r.RemoteAddr)
			time.Sleep(time.Second)
		}))
		ctx, cancel := context.WithCancel(t.Context())
		ask := func(address string) {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
			r.RemoteAddr = address
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		var wait sync.WaitGroup
		for port := range 100 {
			wait.Go(func() { ask(fmt.Sprintf("10.0.0.1:%d", port)) })
		}
		synctest.Wait()
		began := time.Now()
		ask("10.0.0.2:1")
		if len(made) > 3 || time.Since(began) > 3*(time.Second+maxRest) {
			t.Errorf("the answer took %s, after %d others; want at most two", time.Since(began), len(made)-1)
		}
		cancel() // The others go away, and leave nothing behind.
		wait.Wait()
		time.Sleep(time.Minute)
		ctx = t.Context()
		ask("10.0.0.1:1")
		if last := made[len(made)-1]; last != "10.0.0.1:1" {
			t.Errorf("the last answer is for %s, want one for 10.0.0.1:1", last)
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
