package liveness

import "net/http"

// CountWrites wraps the transport of the client with which the reconcile loops write, for
// rest.Config.Wrap. A large Job may be reconciled for long, so its writes count as work that
// is done. Reads do not: watches go on while a loop stands still.
func (w *Watch) CountWrites(next http.RoundTripper) http.RoundTripper { return counting{next, w} }

type counting struct {
	next  http.RoundTripper
	watch *Watch
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		c.watch.writes.Add(1)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport.
func (c counting) WrappedRoundTripper() http.RoundTripper { return c.next }
