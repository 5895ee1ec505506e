package probes

import (
	"container/list"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxConnections is how many connections may be open. One more closes the oldest of the address
// that has most, so that a client that opens many does not keep out the kubelet or Prometheus.
const maxConnections = 128

// answerTimeout is how long a client may take to read an answer.
const answerTimeout = 20 * time.Second

// connections are the open connections. Everybody who reaches the port may open some, so
// their number is limited.
type connections struct {
	mu   sync.Mutex
	open *list.List // of net.Conn, the oldest first
	by   map[net.Conn]*list.Element
	from map[netip.Addr]int // how many are open, by the address of the client
}

func newConnections() *connections {
	return &connections{open: list.New(), by: map[net.Conn]*list.Element{}, from: map[netip.Addr]int{}}
}

// changed is a hook of http.Server.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.by[conn] = c.open.PushBack(conn)
		c.from[addressOf(conn)]++
		if c.open.Len() > maxConnections {
			surplus := c.surplus()
			c.remove(surplus)
			_ = surplus.Close() // its requests fail
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(conn)
	}
}

func (c *connections) remove(conn net.Conn) {
	if element := c.by[conn]; element != nil {
		c.open.Remove(element)
		delete(c.by, conn)
		address := addressOf(conn)
		if c.from[address]--; c.from[address] == 0 {
			delete(c.from, address)
		}
	}
}

// surplus is the oldest connection of an address that has most.
func (c *connections) surplus() net.Conn {
	most := slices.Max(slices.Collect(maps.Values(c.from)))
	e := c.open.Front()
	for c.from[addressOf(e.Value.(net.Conn))] < most {
		e = e.Next()
	}
	return e.Value.(net.Conn)
}

// addressOf is the address of the client, without its port.
func addressOf(conn net.Conn) netip.Addr {
	address, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // the zero value, if it is no TCP connection
	return address.Addr()
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
