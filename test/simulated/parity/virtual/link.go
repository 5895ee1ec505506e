package virtual

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// errCut is the error of requests after the process's network was cut.
var errCut = errors.New("the network is cut")

// A Lateness says how late a process sees writes.
type Lateness struct {
	// By is how long after a write its event arrives.
	By time.Duration
	// Apart is how long after one event the next arrives at the earliest.
	Apart time.Duration
}

// Latenesses are those of one process, by resource ("pods", "jobs").
type Latenesses map[string]Lateness

// A link is the network between one process and the API server. It is made in the
// bubble in which it is used.
type link struct {
	server http.RoundTripper
	late   Latenesses
	// up ends when the link is cut.
	up  context.Context
	cut context.CancelFunc
	// refused is called for each answer that says that a request was wrong.
	refused func(r *http.Request, message string)

	// events is how many events have been created.
	events atomic.Int64

	mu   sync.Mutex
	rand *rand.Rand
}

func newLink(server http.RoundTripper, late Latenesses, seed uint64, refused func(*http.Request, string)) *link {
	up, cut := context.WithCancel(context.Background())
	return &link{
		server: server, late: late, up: up, cut: cut, refused: refused,
		rand: rand.New(rand.NewPCG(seed, 0x6c696e6b)),
	}
}

// someTime is how long a message takes: some milliseconds, drawn to the nanosecond,
// so that no two things happen at one instant.
func (l *link) someTime() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Millisecond + time.Duration(l.rand.Int64N(int64(4*time.Millisecond)))
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := l.travel(r.Context()); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	if err := l.nameEvent(r); err != nil {
		return nil, err
	}
	resp, err := l.server.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnprocessableEntity || resp.StatusCode == http.StatusBadRequest {
		l.refused(r, message(resp))
	}
	if r.URL.Query().Get("watch") != "" {
		resp.Body = l.watch(resp, path.Base(r.URL.Path))
		return resp, nil
	}
	if err := l.travel(r.Context()); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// travel waits for as long as a message takes in one direction.
func (l *link) travel(ctx context.Context) error {
	timer := time.NewTimer(l.someTime())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-l.up.Done():
		return errCut
	case <-timer.C:
		return nil
	}
}

// A frame is one event of a watch on its way.
type frame struct {
	bytes []byte
	due   time.Time
	err   error
}

// A stream is the body of a watch whose events are late.
type stream struct {
	inner  io.ReadCloser
	up     context.Context
	frames chan frame
	closed chan struct{}
	close  sync.Once
	rest   []byte
	err    error
}

// maxUnderway is how many events of one watch may be on their way; the next ones wait
// at the server.
const maxUnderway = 256

func (l *link) watch(resp *http.Response, resource string) io.ReadCloser {
	s := &stream{inner: resp.Body, up: l.up, frames: make(chan frame, maxUnderway), closed: make(chan struct{})}
	late := l.late[resource]
	late.By += l.someTime()
	go s.carry(newFrames(resp), late)
	return s
}

// carry sends each event on its way.
func (s *stream) carry(read func() ([]byte, error), late Lateness) {
	defer close(s.frames)
	var last time.Time
	for {
		bytes, err := read()
		due := time.Now().Add(late.By)
		if earliest := last.Add(late.Apart); due.Before(earliest) {
			due = earliest
		}
		last = due
		select {
		case s.frames <- frame{bytes, due, err}:
		case <-s.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 && s.err == nil {
		s.rest, s.err = s.next()
	}
	if len(s.rest) == 0 {
		return 0, s.err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stream) next() ([]byte, error) {
	var f frame
	select {
	case f = <-s.frames:
	case <-s.closed:
		return nil, io.ErrClosedPipe
	case <-s.up.Done():
		return nil, errCut
	}
	timer := time.NewTimer(time.Until(f.due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return f.bytes, f.err
	case <-s.closed:
		return nil, io.ErrClosedPipe
	case <-s.up.Done():
		return nil, errCut
	}
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.close.Do(func() { close(s.closed) })
	return s.inner.Close()
}

// message reads what an answer says, and leaves it to be read again.
func message(resp *http.Response) string {
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
	if st, ok := object.(*metav1.Status); ok && err == nil {
		return st.Message
	}
	return fmt.Sprintf("%q", body)
}
