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

// An answer is what an answer's Date said, and when it was heard. That has a monotonic
// reading: what has passed since does not change when this process's clock is set.
type answer struct{ date, heard time.Time }

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
	c.last.Store(&answer{date: at, heard: now})
}

// Now is the API server's time, up to a second early: the Date is in whole
// seconds. The zero time while it has not answered yet.
func (c *Clock) Now() time.Time {
	last := c.last.Load()
	if last == nil {
		return time.Time{}
	}
	return last.date.Add(time.Since(last.heard))
}
