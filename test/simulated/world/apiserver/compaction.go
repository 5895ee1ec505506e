package apiserver

import (
	"slices"
	"time"
)

// history is how long the server keeps old versions: a real one compacts its storage every
// five minutes, and then keeps the versions of the last five minutes.
const history = 10 * time.Minute

// A mark is the server's resource version at a time.
type mark struct {
	at      time.Time
	version uint64
}

// Compact makes watches and lists from before the version answer 410.
func (s *Server) Compact(resourceVersion uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compact(resourceVersion)
}

func (s *Server) compact(resourceVersion uint64) {
	s.compacted = max(s.compacted, min(resourceVersion, s.version))
	for _, r := range registries().stores {
		t := s.tables[r.resource]
		t.log = slices.Clone(t.since(s.compacted))
	}
}

// forget compacts versions that are older than history. The caller holds the lock.
func (s *Server) forget(now time.Time) {
	s.marks = append(s.marks, mark{now, s.version})
	old := 0
	for old < len(s.marks) && now.Sub(s.marks[old].at) >= history {
		old++
	}
	if old > 0 {
		s.compact(s.marks[old-1].version)
		s.marks = slices.Delete(s.marks, 0, old)
	}
}
