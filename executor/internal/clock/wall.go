// Package clock has what waits: clocks of wall time, delays after failures (Backoff), and a work queue
// to which items are added after a delay. Package controller says where wall time is used, and where
// elapsed time.
//
// Somebody may set wall time back or forward at any moment. The result of time.Now has both
// times, and arithmetic on it uses the elapsed one (its monotonic reading): after the clock
// was set, the result differs from wall time.
package clock

import "time"

// New returns a clock of wall time: the times of now, without their monotonic readings. nil
// stands for time.Now.
func New(now func() time.Time) func() time.Time {
	if now == nil {
		now = time.Now
	}
	return func() time.Time { return now().Round(0) }
}

// WallOf converts a moment of elapsed time, such as the end of a wait, to wall time. now
// is what the wall clock shows now. If the clock was set after the moment was computed,
// the result is still as far ahead as the wait has left.
func WallOf(moment, now time.Time) time.Time { return now.Add(time.Until(moment)) }

// MomentOf converts a time of the wall clock, which shows now, to a moment of elapsed time. It stays as far ahead if the
// clock is set afterwards. The zero time stays zero.
func MomentOf(wall, now time.Time) time.Time {
	if wall.IsZero() {
		return wall
	}
	return time.Now().Add(wall.Sub(now))
}
