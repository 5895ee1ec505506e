package world

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A stream is a watch with delays: each event is delivered in order, some time after it
// arrived.
type stream struct {
	link     *link
	request  *request
	inner    io.ReadCloser
	protobuf bool
	out      *io.PipeWriter

	mu     sync.Mutex
	queue  []delivery
	last   time.Time // When the last one is due.
	ended  error
	more   chan struct{} // Holds one if there may be more in the queue.
	closed chan struct{}
	once   sync.Once
	forget func() bool // Ends the wait for the reader's context.
}

// A delivery is an event that is due.
type delivery struct {
	frame []byte
	due   time.Time
	cut   bool // The watch breaks off in the middle of it.
}

// follow puts the stream between a watch and its reader.
func (l *link) follow(ctx context.Context, r *request, resp *http.Response) {
	in, out := io.Pipe()
	s := &stream{
		link: l, request: r, inner: resp.Body, out: out, more: make(chan struct{}, 1), closed: make(chan struct{}),
		protobuf: strings.Contains(resp.Header.Get("Content-Type"), "protobuf"),
	}
	resp.Body = &streamBody{in, s}
	s.mu.Lock() // The context may be done already.
	s.forget = context.AfterFunc(ctx, s.close)
	s.mu.Unlock()
	go s.read()
	go s.write()
}

// A streamBody is what the client reads.
type streamBody struct {
	io.Reader
	s *stream
}

// Close implements io.Closer.
func (b *streamBody) Close() error {
	b.s.close()
	return nil
}

func (s *stream) close() {
	s.once.Do(func() {
		close(s.closed)
		s.mu.Lock()
		forget := s.forget
		s.mu.Unlock()
		forget()
		s.inner.Close()
		s.out.CloseWithError(io.ErrUnexpectedEOF)
	})
}

// read receives events as the server sends them.
func (s *stream) read() {
	for {
		frame, err := nextFrame(s.inner, s.protobuf)
		s.take(frame, err)
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (s *stream) take(frame []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.ended = err
		return
	}
	r := s.request
	due := time.Now().Add(r.draw(s.link.plan.network.event))
	next := delivery{frame: frame}
	times := 1
	if f := s.link.fault(r, faultKind.ofWatch); f != nil {
		switch f.kind {
		case watchLag:
			due = due.Add(r.draw(f.delay))
		case watchBreak:
			next.cut = true
		case duplicate:
			times = 2
		}
	}
	for range times {
		if !due.After(s.last) {
			due = s.last.Add(burstGap)
		}
		next.due, s.last = due, due
		s.queue = append(s.queue, next)
	}
}

// next returns the first delivery, or how the stream ended.
func (s *stream) next() (d delivery, ok bool, ended error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return delivery{}, false, s.ended
	}
	d = s.queue[0]
	s.queue = s.queue[1:]
	return d, true, nil
}

// write delivers events when they are due.
func (s *stream) write() {
	defer s.close()
	for {
		d, ok, ended := s.next()
		if ended != nil {
			s.out.CloseWithError(ended)
			return
		}
		if !ok && !s.await(nil) {
			return
		}
		if !ok {
			continue
		}
		if !s.sleep(time.Until(d.due)) {
			return
		}
		if _, err := s.link.pass(s.request.Context()); err != nil {
			return
		}
		if d.cut {
			s.out.Write(d.frame[:len(d.frame)/2])
			return
		}
		if _, err := s.out.Write(d.frame); err != nil {
			return
		}
	}
}

func (s *stream) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	return s.await(timer.C)
}

// await waits for a time, or for more events if no time is given; false if the stream
// is over.
func (s *stream) await(at <-chan time.Time) bool {
	more := s.more
	if at != nil {
		more = nil
	}
	select {
	case <-at:
	case <-more:
	case <-s.closed:
		return false
	case <-s.link.down:
		return false
	}
	return true
}
