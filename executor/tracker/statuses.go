package tracker

import "time"

// statuses say when the next routine status may be written: a status that only counts,
// or one that records pods while others are active.
type statuses struct {
	// due is when the next status that records finished pods may be written. A status
	// that only counts waits half a period more, because the next finished pod may make
	// it unnecessary.
	due time.Time
	// conflicts counts status writes in a row that ended with a conflict.
	conflicts int
}

// StatusConflict records that a status write ended with a conflict, and returns how many have done so
// since the last one that was written.
func (j *Job) StatusConflict() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.statuses.conflicts++
	return j.statuses.conflicts
}

// StatusDue is when the next routine status may be written; zero: none was written yet.
func (j *Job) StatusDue() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.statuses.due
}

// StatusWritten plans the next routine status after one was written. They are a period apart on
// average. After a quiet time, two may follow each other at once. The next one is due
// within a period, however many other statuses were written.
func (j *Job) StatusWritten(period time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, now := &j.statuses, time.Now()
	ahead := min(max(s.due.Sub(now), -period), 0)
	s.due, s.conflicts = now.Add(ahead+period), 0
}

// PostponeStatus delays the next routine status by the time that the releases after the last
// one took. Meanwhile more pods have ended, and one status should record as many as
// possible.
func (j *Job) PostponeStatus(by time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.statuses.due = j.statuses.due.Add(by)
}
