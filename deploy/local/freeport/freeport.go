// Package freeport finds ports of the loopback address for processes to listen on.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// A Range is the ports from First to Last. Ranges lie below the one from which operating
// systems number outgoing connections (Linux: 32768 and up) and below the API server's node
// ports (30000 and up). A port that the kernel hands out itself, as for a listener on port 0,
// may be taken by any client's connection before its process listens, or while that is
// stopped; a client that retries may even connect to itself.
type Range struct{ First, Last int }

var (
	// ControlPlane is for the components of a local control plane.
	ControlPlane = Range{20000, 29999}
	// Tests is for processes that tests start.
	Tests = Range{10000, 19999}
)

const attempts = 200

// Pick returns a port that is not to be avoided.
func (r Range) Pick(avoid func(port int) bool) (int, error) {
	for range attempts {
		if port := r.First + rand.IntN(r.Last-r.First+1); !avoid(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found between %d and %d", r.First, r.Last)
}

// Taken tries a port. Another process may take it right after; whoever starts a process copes
// with that.
func Taken(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return true
	}
	l.Close()
	return false
}

const loopback = "127.0.0.1"

var given sync.Map

// Address returns the host:port of a port of Tests on which nobody listens. A process gets
// each port once at most.
func Address() (string, error) {
	port, err := Tests.Pick(func(port int) bool {
		if Taken(port) {
			return true
		}
		_, before := given.LoadOrStore(port, true)
		return before
	})
	return net.JoinHostPort(loopback, strconv.Itoa(port)), err
}

// test is a testing.TB.
type test interface {
	Helper()
	Fatal(args ...any)
}

// AddressFor is Address for a test, which fails without one.
func AddressFor(t test) string {
	t.Helper()
	address, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// PortFor is the port alone.
func PortFor(t test) string {
	t.Helper()
	_, port, err := net.SplitHostPort(AddressFor(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
