package kubeclient

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// A Clock knows the API server's time, from the Date of its last answer.
type Clock struct {
	// ahead is how far that clock was ahead of this process's, in nanoseconds with
	// the last bit set, so that 0 says that there was no answer yet.
	ahead atomic.Int64
}

// Watch makes cfg's clients tell the Clock.
func (c *Clock) Watch(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil {
				c.hear(resp.Header.Get("Date"), time.Now())
			}
			return resp, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (c *Clock) hear(date string, now time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return // A server that does not say is believed to agree.
	}
	c.ahead.Store(int64(at.Sub(now)) | 1)
}

// Now is the API server's time, up to a second early: the Date is in whole
// seconds. The zero time while it has not answered yet.
func (c *Clock) Now() time.Time {
	ahead := c.ahead.Load()
	if ahead == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ahead))
}
