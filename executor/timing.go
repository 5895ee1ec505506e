package executor

import (
	"net/http/httptrace"
	"sync"
	"time"
)

// timed makes a write, and says how long the API server took to answer the last
// request of it, or has not answered it. What the request waited for the client's
// own rate limit does not count. 0: it is not known.
func (b *batch) timed(i int) (time.Duration, error) {
	if !b.large {
		return 0, b.write(b.ctx, i)
	}
	var c clock
	err := b.write(httptrace.WithClientTrace(b.ctx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { c.sent() },
		GotFirstResponseByte: c.answered,
	}), i)
	return c.took(), err
}

// A clock times the last of some requests.
type clock struct {
	mu         sync.Mutex
	start, end time.Time
}

func (c *clock) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start, c.end = time.Now(), time.Time{}
}

func (c *clock) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = time.Now()
}

func (c *clock) took() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.start.IsZero():
		return 0
	case c.end.IsZero():
		return time.Since(c.start)
	default:
		return c.end.Sub(c.start)
	}
}
