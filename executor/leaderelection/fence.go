package leaderelection

import (
	"io"
	"net/http"
	"sync"
)

// Fence returns a wrapper for the transport of every client of this replica, as
// rest.Config.Wrap takes it, except for Config.Client. It lets reads pass, and a
// write only while this replica is certain to lead; the others end with
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
			_ = r.Body.Close() // nothing was read from it
		}
		return nil, err
	}
	return f.next.RoundTrip(f.fenced(r))
}

// fenced checks once more when the body is sent: a request may have waited for a
// connection meanwhile, and one without its body has no effect.
func (f *fence) fenced(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	own := *r
	own.Body = &fencedBody{r.Body, f.check}
	if again := r.GetBody; again != nil { // for another try on a new connection
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

// Read implements io.Reader. It checks after it has read, to be as late as can be.
func (b *fencedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if refused := b.check(); refused != nil {
		return 0, refused
	}
	return n, err
}
