package policyserver

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/credentials"
)

// maxHandshakes is how many TLS handshakes may be in progress. One more ends the oldest,
// so that a client that only opens connections keeps nobody out.
const maxHandshakes = 128

// connectionsPerSecond is how many connections are accepted in a second, after the
// first maxHandshakes. More wait in the operating system's queue, so that a client that
// only opens connections takes no processor time from calls.
const connectionsPerSecond = 1000

// stalledWriteThreshold is how long a write may take before nothing more is read from the
// connection. A write takes microseconds unless the client reads nothing.
const stalledWriteThreshold = 10 * time.Millisecond

// A rateLimitedListener accepts at most connectionsPerSecond.
type rateLimitedListener struct {
	net.Listener
	accepts *rate.Limiter
}

func rateLimited(lis net.Listener) net.Listener {
	return &rateLimitedListener{Listener: lis, accepts: rate.NewLimiter(connectionsPerSecond, maxHandshakes)}
}

// Accept implements net.Listener.
func (l *rateLimitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		time.Sleep(l.accepts.Reserve().Delay())
	}
	return conn, err
}

// A gate admits connections: it finds out who connects, and limits the number of
// connections.
type gate struct {
	credentials.TransportCredentials
	callers    *callers
	authorizer *authorizer
	metrics    *callMetrics
	handshakes *handshakes
}

// handshakes are the TLS handshakes in progress.
type handshakes struct {
	mu    sync.Mutex
	open  *list.List // of *handshake, the oldest first
	ended bool
}

type handshake struct {
	conn   net.Conn
	closed bool
}

func newGate(creds credentials.TransportCredentials, cs *callers, a *authorizer, m *callMetrics) *gate {
	return &gate{
		TransportCredentials: creds, callers: cs, authorizer: a, metrics: m, handshakes: &handshakes{open: list.New()},
	}
}

// ServerHandshake implements credentials.TransportCredentials.
func (g *gate) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	done := g.handshakes.begin(raw)
	secured, info, err := g.TransportCredentials.ServerHandshake(raw)
	if !done() && err == nil {
		err = errEnded
	}
	if err != nil {
		g.metrics.connectionRefused(refusedHandshake)
		return nil, nil, err
	}
	ids := identify(info, raw.RemoteAddr())
	conn := &connection{Conn: secured, raw: raw, info: info, ids: ids, callers: g.callers, answers: map[*answer]struct{}{}}
	if err := g.letIn(conn); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", shown(ids.primary()), err), secured.Close())
	}
	return conn, conn, nil
}

// letIn admits a connection, which replaces another one if there is no room.
func (g *gate) letIn(conn *connection) error {
	replaced, err := g.callers.connect(conn, g.authorizer.identity(conn.ids))
	switch {
	case errors.Is(err, errTooManyConnections):
		g.metrics.connectionEnded(refusedTooMany, "connection refused", conn)
	case errors.Is(err, errFull):
		g.metrics.connectionEnded(refusedFull, "connection refused", conn)
	case replaced != nil:
		g.metrics.connectionEnded(replacedByOther, "connection closed for one of another caller", replaced)
		// To close it by TLS would wait until the other side reads.
		_ = replaced.raw.Close() // its calls fail
	}
	return err
}

// Clone implements credentials.TransportCredentials.
func (g *gate) Clone() credentials.TransportCredentials {
	clone := *g
	clone.TransportCredentials = g.TransportCredentials.Clone()
	return &clone
}

var errEnded = errors.New("the connection was closed as its handshake ended")

// begin notes that a handshake is in progress; done notes its end. done returns false if
// the connection was closed meanwhile. Such a connection must not be let in: gRPC would
// not close it again, so it would keep its place.
func (h *handshakes) begin(raw net.Conn) (done func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begun := &handshake{conn: raw}
	element := h.open.PushBack(begun)
	if h.ended || h.open.Len() > maxHandshakes {
		h.endOldest()
	}
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.open.Remove(element) // does nothing if it is no longer there
		return !begun.closed
	}
}

// endOldest ends the oldest handshake, which returns an error. h.mu must be locked.
func (h *handshakes) endOldest() {
	oldest := h.open.Remove(h.open.Front()).(*handshake)
	oldest.closed = true
	_ = oldest.conn.Close()
}

// end ends all handshakes, also those that begin later. A server that stops would wait
// for them.
func (h *handshakes) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for h.open.Len() > 0 {
		h.endOldest()
	}
}

// A connection is a caller's connection. Its calls have it as their AuthInfo.
type connection struct {
	net.Conn
	raw     net.Conn // below TLS
	info    credentials.AuthInfo
	ids     identities
	caller  *caller
	callers *callers

	mu      sync.Mutex
	answers map[*answer]struct{} // nil once it is closed

	writing sync.Mutex   // held while bytes are written
	written atomic.Int64 // when that began, in ns since 1970; 0: nothing is being written
}

// Write implements net.Conn.
func (c *connection) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.written.Store(time.Now().UnixNano())
	defer c.written.Store(0)
	return c.Conn.Write(b)
}

// Read implements net.Conn. It waits while the client does not read what is written to it. The
// reason: for each call, the transport keeps the stream, the metadata and up to one window of data
// until the result is written, even if the call has ended. A client that sends calls and reads
// nothing would otherwise take any amount of memory.
func (c *connection) Read(b []byte) (int, error) {
	if began := c.written.Load(); began != 0 && time.Since(time.Unix(0, began)) > stalledWriteThreshold {
		c.awaitWrite()
	}
	return c.Conn.Read(b)
}

func (c *connection) awaitWrite() {
	c.writing.Lock()
	defer c.writing.Unlock()
}

// AuthType implements credentials.AuthInfo.
func (c *connection) AuthType() string { return c.info.AuthType() }

// keep registers an answer, so that Close finishes it. It returns false if the connection is
// closed already.
func (c *connection) keep(a *answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		return false
	}
	c.answers[a] = struct{}{}
	return true
}

// Close closes the connection. The transport forgets answers that it had not
// written, so their memory is given back here.
func (c *connection) Close() error {
	c.mu.Lock()
	unwritten := c.answers
	c.answers = nil
	c.mu.Unlock()
	if unwritten != nil {
		for a := range unwritten {
			a.finish()
		}
		c.callers.disconnect(c)
	}
	return c.Conn.Close()
}
