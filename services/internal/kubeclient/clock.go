package kubeclient

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// A Clock knows the API server's time, from the Date header of its last answer.
type Clock struct {
	last atomic.Pointer[answer] // nil while there was none.
}

// An answer is the Date of an answer, and when it was received. The latter has a monotonic
// reading, so the time since then does not change when this machine's clock is set.
type answer struct{ date, received time.Time }

// Watch makes the Clock read the answers to cfg's clients.
func (c *Clock) Watch(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil {
				c.record(resp.Header.Get("Date"), time.Now())
			}
			return resp, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (c *Clock) record(date string, now time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return // Without a Date, the time that is known stays.
	}
	c.last.Store(&answer{date: at, received: now})
}

// Now is the API server's time, up to a second early, because the Date has whole seconds.
// It is zero before the first answer.
func (c *Clock) Now() time.Time {
	last := c.last.Load()
	if last == nil {
		return time.Time{}
	}
	return last.date.Add(time.Since(last.received))
}
