package probes

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConnections is how many connections may be open. One more replaces the oldest, so
// that a client that opens many does not keep out the kubelet or Prometheus.
const maxConnections = 128

// answerTimeout is how long a client may take to read an answer.
const answerTimeout = 20 * time.Second

// connections are the open connections. Everybody who reaches the port may open some, so
// their number is limited.
type connections struct {
	mu   sync.Mutex
	open *list.List // of net.Conn, the oldest first
	by   map[net.Conn]*list.Element
}

func newConnections() *connections {
	return &connections{open: list.New(), by: map[net.Conn]*list.Element{}}
}

// changed is a hook of http.Server.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.by[conn] = c.open.PushBack(conn)
		if c.open.Len() > maxConnections {
			oldest := c.open.Front().Value.(net.Conn)
			c.remove(oldest)
			_ = oldest.Close() // its requests fail
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(conn)
	}
}

func (c *connections) remove(conn net.Conn) {
	if element := c.by[conn]; element != nil {
		c.open.Remove(element)
		delete(c.by, conn)
	}
}

// readInTime closes the connection of a client that does not read its answer in time: the
// answer would stay in memory.
func readInTime(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout)) // fails in tests without a connection
		h.ServeHTTP(w, r)
	})
}

// readAtLeisure sets no time limit. It is for trusted clients: a profile or a stream takes
// as long as its client asks for.
func readAtLeisure(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // removes that of an earlier request
		h.ServeHTTP(w, r)
	})
}
