package liveness

import "net/http"

// CountRequests wraps the transport of the client that the reconcile loops use, for
// rest.Config.Wrap. The reconcile of a large Job may take long, so its writes count as
// progress. A loop that waits for the API server does not stand still, and a restart would
// not help it. Watches do not count, because they go on while a loop stands still.
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
	c.watch.pending.Add(1)
	defer c.watch.pending.Add(-1)
	resp, err := c.next.RoundTrip(r)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		c.watch.writes.Add(1)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport.
func (c counting) WrappedRoundTripper() http.RoundTripper { return c.next }
