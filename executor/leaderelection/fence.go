package leaderelection

import (
	"io"
	"net/http"
	"sync"
)

// Fence returns a wrapper for the transports of this replica's clients, for
// rest.Config.Wrap. All clients need it except Config.Client. It lets reads pass. It lets
// a write pass only while this replica is certain to lead, and otherwise returns
// ErrNotLeading.
func (e *Election) Fence() func(http.RoundTripper) http.RoundTripper {
	var once sync.Once
	check := func() error {
		err := e.tenure.check()
		if err != nil {
			once.Do(func() { e.cfg.Logger.Warn("write refused", "error", err) })
		}
		return err
	}
	return func(next http.RoundTripper) http.RoundTripper { return &fence{next: next, check: check} }
}

type fence struct {
	next  http.RoundTripper
	check func() error
}

// RoundTrip implements http.RoundTripper.
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return f.next.RoundTrip(r)
	}
	if err := f.check(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // The body was not read.
		}
		return nil, err
	}
	return f.next.RoundTrip(f.fenced(r))
}

// fenced returns a request that is checked again when its body is sent: the request may
// wait for a connection meanwhile. A request without its body has no effect.
func (f *fence) fenced(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	own := *r
	own.Body = &fencedBody{r.Body, f.check}
	if again := r.GetBody; again != nil { // net/http calls it to try again on a new connection.
		own.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return &fencedBody{body, f.check}, nil
		}
	}
	return &own
}

// WrappedRoundTripper lets client-go find the transport.
func (f *fence) WrappedRoundTripper() http.RoundTripper { return f.next }

type fencedBody struct {
	io.ReadCloser
	check func() error
}

// Read implements io.Reader. It checks after reading, to be as late as possible.
func (b *fencedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if refused := b.check(); refused != nil {
		return 0, refused
	}
	return n, err
}
