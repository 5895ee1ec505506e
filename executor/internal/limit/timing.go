package limit

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"
)

// timed makes a write, and returns the latency of its last request: from the moment
// it was sent, without the wait for the client's own rate limit, to the first byte of
// the answer, or to the end if none came. 0: no request was sent.
func timed(ctx context.Context, write func(ctx context.Context) error) (time.Duration, error) {
	var s stopwatch
	err := write(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { s.sent() },
		GotFirstResponseByte: s.answered,
	}))
	return s.latency(), err
}

// A stopwatch times the last of some requests.
type stopwatch struct {
	mu         sync.Mutex
	start, end time.Time
}

func (s *stopwatch) sent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start, s.end = time.Now(), time.Time{}
}

func (s *stopwatch) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = time.Now()
}

func (s *stopwatch) latency() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.start.IsZero():
		return 0
	case s.end.IsZero():
		return time.Since(s.start)
	default:
		return s.end.Sub(s.start)
	}
}
