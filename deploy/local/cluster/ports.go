package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"

	"jobpolicy.dev/deploy/local/freeport"
)

// portSet remembers which port each listener has, by name.
type portSet struct {
	file  string
	taken func(port int) bool

	mu    sync.Mutex
	ports map[string]int
}

// loadPorts reads the ports of an earlier run from file, if there was one.
func loadPorts(file string) (*portSet, error) {
	s := &portSet{file: file, ports: map[string]int{}, taken: freeport.Taken}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ports: %w", err)
	}
	if err := json.Unmarshal(text, &s.ports); err != nil {
		return nil, fmt.Errorf("ports: %s: %w", file, err)
	}
	return s, nil
}

// choose gives every name a port: the one it had when that is free, or a new
// one. The choice is saved. A port that is still held by the component itself
// counts as taken.
func (s *portSet) choose(names []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if port, ok := s.ports[name]; ok && !s.taken(port) {
			continue
		}
		port, err := freeport.ControlPlane.Pick(func(port int) bool { return s.owned(port) || s.taken(port) })
		if err != nil {
			return err
		}
		s.ports[name] = port
	}
	return s.save()
}

func (s *portSet) owned(port int) bool {
	return slices.Contains(slices.Collect(maps.Values(s.ports)), port)
}

func (s *portSet) save() error {
	text, err := json.MarshalIndent(s.ports, "", "  ")
	if err != nil {
		return fmt.Errorf("ports: %w", err)
	}
	if err := os.WriteFile(s.file, text, 0o600); err != nil {
		return fmt.Errorf("ports: %w", err)
	}
	return nil
}

// address returns the host:port of the listener called name.
func (s *portSet) address(name string) string {
	return net.JoinHostPort(loopback, s.port(name))
}

func (s *portSet) port(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.Itoa(s.ports[name])
}
