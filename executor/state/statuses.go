package state

import (
	"sync"
	"time"
)

// Statuses says when the next routine status may be written: a status that only counts,
// or one that records pods while others are active.
type Statuses struct {
	mu sync.Mutex
	// due is when the next status that records finished pods may be written. A status
	// that only counts waits half a period more, because the next finished pod may make
	// it unnecessary.
	due time.Time
	// conflicts counts status writes in a row that ended with a conflict.
	conflicts int
}

// Conflict records that a status write ended with a conflict, and returns how many have done so
// since the last one that was written.
func (s *Statuses) Conflict() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conflicts++
	return s.conflicts
}

// Due is when the next routine status may be written; zero: none was written yet.
func (s *Statuses) Due() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due
}

// Reschedule plans the next routine status after one was written. They are a period apart on
// average. After a quiet time, two may follow each other at once. The next one is due
// within a period, however many other statuses were written.
func (s *Statuses) Reschedule(period time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	ahead := min(max(s.due.Sub(now), -period), 0)
	s.due, s.conflicts = now.Add(ahead+period), 0
}

// Postpone delays the next routine status by the time that the releases after the last
// one took. Meanwhile more pods have ended, and one status should record as many as
// possible.
func (s *Statuses) Postpone(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = s.due.Add(by)
}
