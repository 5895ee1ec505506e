package state

import (
	"sync"
	"time"
)

// Statuses says when the next routine status may be written: one that only counts, or
// that records pods while others are active.
type Statuses struct {
	mu sync.Mutex
	// due is when the next one may be written that records finished pods. One that only
	// counts waits half a period more: the next pod to finish may bring its own.
	due time.Time
}

// Due is when the next routine status may be written; zero: none was written yet.
func (s *Statuses) Due() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due
}

// Written records that a status was written. Routine ones are a period apart on
// average; of a Job that was quiet, two may follow each other. However many that are
// not routine were written, the next one is due within a period.
func (s *Statuses) Written(period time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.due = earliest(latest(s.due, now.Add(-period)).Add(period), now.Add(period))
}

// Postpone makes the next routine status later by what the releases after the last one
// have taken: while many pods were released, others have ended, and one status is to
// record as many as it may.
func (s *Statuses) Postpone(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = s.due.Add(by)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
