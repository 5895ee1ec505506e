package probes

import (
	"net/http"
	"runtime/pprof"
	"sync"
)

// requests are counts of the requests that reconcile loops make.
type requests struct {
	writes  int64 // that have ended, with an answer or an error
	pending int64 // that have not ended yet
}

// requestCounts are the requests by the name of the queue for whose reconciles they are made.
// The name of those that are made for no queue in particular is empty.
type requestCounts struct {
	mu sync.Mutex
	by map[string]requests
}

func (c *requestCounts) add(queue string, writes, pending int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.by[queue]
	c.by[queue] = requests{r.writes + writes, r.pending + pending}
}

// of returns the requests that show progress of the queue: its own, and those of no queue in
// particular.
func (c *requestCounts) of(queue string) requests {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, rest := c.by[queue], c.by[""]
	return requests{own.writes + rest.writes, own.pending + rest.pending}
}

// CountRequests wraps the transport of the client that the reconcile loops use, for
// rest.Config.Wrap. The reconcile of a large Job may take long, so its writes count as
// progress of its queue. A loop that waits for the API server is not stalled, and a
// restart would not help it. Watches do not count, because they go on while a loop is stalled.
func (w *Watch) CountRequests(next http.RoundTripper) http.RoundTripper { return counting{next, w} }

type counting struct {
	next  http.RoundTripper
	watch *Watch
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.URL.Query().Has("watch") {
		return c.next.RoundTrip(r)
	}
	queue, _ := pprof.Label(r.Context(), c.watch.cfg.QueueLabel)
	c.watch.requests.add(queue, 0, 1)
	resp, err := c.next.RoundTrip(r)
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		c.watch.requests.add(queue, 0, -1)
	} else {
		c.watch.requests.add(queue, 1, -1)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport.
func (c counting) WrappedRoundTripper() http.RoundTripper { return c.next }
