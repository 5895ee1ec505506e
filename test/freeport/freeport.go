// Package freeport finds ports for processes that tests start.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are taken from below the range of the local control plane's (20000 and up), and
// from below the range that operating systems give to outgoing connections (Linux: 32768
// and up). A port that the kernel gives to a listener on port 0 is in the latter: any
// connection may take it before the process listens on it.
const (
	first    = 10000
	last     = 19999
	attempts = 200
)

var (
	mu    sync.Mutex
	given = map[int]bool{}
)

// Take returns a port of the loopback address on which nobody listens. A process gets
// each port once at most.
func Take() (string, error) {
	mu.Lock()
	defer mu.Unlock()
	for range attempts {
		port := first + rand.IntN(last-first+1)
		if given[port] {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return "", err
		}
		given[port] = true
		return strconv.Itoa(port), nil
	}
	return "", errors.New("no free port found from 10000 to 19999")
}

// Address is a free port with its host, 127.0.0.1.
func Address() (string, error) {
	port, err := Take()
	return net.JoinHostPort("127.0.0.1", port), err
}
