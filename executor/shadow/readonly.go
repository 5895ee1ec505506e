package shadow

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrReadOnly says that a request was not sent because it writes.
var ErrReadOnly = errors.New("nothing is written in shadow mode")

// ReadOnly wraps the transport of a client, for rest.Config.Wrap: requests that read pass,
// and all others fail with ErrReadOnly. No part of the program should ever send one. This
// check, and RBAC without a verb that writes, are safeguards.
func ReadOnly(next http.RoundTripper) http.RoundTripper { return readOnly{next} }

type readOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t readOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return t.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close() // The body was not read.
	}
	return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, ErrReadOnly)
}

// WrappedRoundTripper lets client-go find the transport.
func (t readOnly) WrappedRoundTripper() http.RoundTripper { return t.next }
