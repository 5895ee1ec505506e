package probes

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// restTimes: after an answer that took t to make, the next one waits restTimes x t. So answers
// keep at most a tenth of one processor busy, however many clients ask.
const restTimes = 9

// maxRest is how long it waits at most: on a machine that is too busy, answers take long, and
// whoever monitors it must get them all the same.
const maxRest = time.Second

// oneAtATime makes answers one after the other, with a rest between them, so that many
// clients at once leave the processors to others. Only one request of each address waits for
// its turn, so that the requests of one client do not delay those of Prometheus. An answer is
// written only when it is complete, so that a slow reader does not delay the others either.
func oneAtATime(h http.Handler) http.Handler {
	turn, queue := make(chan struct{}, 1), &queue{by: map[string]*place{}}
	answer := func(r *http.Request) *buffered {
		b := &buffered{header: http.Header{}, code: http.StatusOK}
		leave, ok := queue.enter(r.Context(), host(r.RemoteAddr))
		if !ok {
			return b
		}
		defer leave()
		select {
		case turn <- struct{}{}:
		case <-r.Context().Done(): // The client is gone.
			return b
		}
		began := time.Now()
		defer func() { time.AfterFunc(min(restTimes*time.Since(began), maxRest), func() { <-turn }) }()
		h.ServeHTTP(b, r)
		return b
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := answer(r)
		readInTime(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			maps.Copy(w.Header(), b.header)
			w.WriteHeader(b.code)
			_, _ = w.Write(b.body.Bytes()) // The client may be gone.
		})).ServeHTTP(w, r)
	})
}

func host(address string) string {
	name, _, _ := net.SplitHostPort(address)
	return cmp.Or(name, address)
}

// A queue has one place for each address.
type queue struct {
	mu sync.Mutex
	by map[string]*place
}

// A place is that of an address. It is dropped when no request of the address is left.
type place struct {
	taken    chan struct{} // has one element while a request has the place
	requests int
}

// enter waits for the place of the address until the context is done; then it returns false.
func (q *queue) enter(ctx context.Context, address string) (leave func(), ok bool) {
	p := q.join(address)
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken; q.part(address, p) }, true
	case <-ctx.Done():
		q.part(address, p)
		return nil, false
	}
}

func (q *queue) join(address string) *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.by[address]
	if p == nil {
		p = &place{taken: make(chan struct{}, 1)}
		q.by[address] = p
	}
	p.requests++
	return p
}

func (q *queue) part(address string, p *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.requests--; p.requests == 0 {
		delete(q.by, address)
	}
}

// A buffered answer is kept in memory.
type buffered struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (b *buffered) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *buffered) WriteHeader(code int) { b.code = code }

// Write implements http.ResponseWriter.
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }
