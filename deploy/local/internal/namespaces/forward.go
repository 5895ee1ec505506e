package namespaces

import (
	"errors"
	"io"
	"net"
	"sync"

	"jobpolicy.dev/deploy/local/internal/supervise"
)

// Forwarder makes addresses of the inside reachable from outside, under the
// same host and port.
type Forwarder struct {
	inside *supervise.Thread

	mu        sync.Mutex
	listeners map[string]net.Listener
}

// NewForwarder forwards to where the thread is.
func NewForwarder(inside *supervise.Thread) *Forwarder {
	return &Forwarder{inside: inside, listeners: map[string]net.Listener{}}
}

// Open listens on a TCP address outside, and passes connections on to the same
// address inside. An address that is open already stays so.
func (f *Forwarder) Open(address string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners[address] != nil {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	f.listeners[address] = listener
	go f.serve(listener, address)
	return nil
}

// Close stops listening. Connections end with their peers inside.
func (f *Forwarder) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, listener := range f.listeners {
		listener.Close()
	}
	clear(f.listeners)
}

func (f *Forwarder) serve(listener net.Listener, address string) {
	for {
		outer, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		go f.pass(outer.(*net.TCPConn), address)
	}
}

// pass connects a connection with one to the same address inside, until both
// directions have ended.
func (f *Forwarder) pass(outer *net.TCPConn, address string) {
	defer outer.Close()
	inner, err := f.dial(address)
	if err != nil {
		return // nobody listens inside: the client sees its connection end
	}
	defer inner.Close()
	var both sync.WaitGroup
	both.Go(func() { copyThenClose(inner, outer) })
	both.Go(func() { copyThenClose(outer, inner) })
	both.Wait()
}

// dial makes the socket on the thread: a socket stays in the network in which
// it was made.
func (f *Forwarder) dial(address string) (conn *net.TCPConn, err error) {
	err = f.inside.Do(func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			conn = c.(*net.TCPConn)
		}
		return err
	})
	return conn, err
}

// copyThenClose tells the reader that no more will come. When it cannot write
// any more, it tells the writer, too.
func copyThenClose(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	to.CloseWrite()
}
