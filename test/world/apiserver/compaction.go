package apiserver

import (
	"slices"
	"time"
)

// history is for how long the server remembers what was: a real one compacts its
// storage every five minutes, to what it was five minutes before.
const history = 10 * time.Minute

// A mark is the version of the server at a time.
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

// forget compacts what is older than the history. The caller holds the lock.
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
