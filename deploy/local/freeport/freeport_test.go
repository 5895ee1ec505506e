package freeport

import (
	"net"
	"strconv"
	"testing"
)

func TestPortsAreFreeAndDifferent(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		text := PortFor(t)
		if seen[text] {
			t.Fatalf("%s was given twice", text)
		}
		seen[text] = true
		port, err := strconv.Atoi(text)
		if err != nil || port < Tests.First || port > Tests.Last {
			t.Errorf("port %s is not in %v", text, Tests)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+text)
		if err != nil {
			t.Errorf("%s is not free: %v", text, err)
			continue
		}
		defer listener.Close()
		if !Taken(port) {
			t.Errorf("port %s has a listener and counts as free", text)
		}
	}
}
