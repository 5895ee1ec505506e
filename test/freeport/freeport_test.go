package freeport

import (
	"net"
	"strconv"
	"testing"
)

func TestPortsAreFreeAndDifferent(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s was given twice", address)
		}
		seen[address] = true
		_, text, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		if port, err := strconv.Atoi(text); err != nil || port < first || port > last {
			t.Errorf("port %s is not from %d to %d", text, first, last)
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Errorf("%s is not free: %v", address, err)
			continue
		}
		defer listener.Close()
	}
}
