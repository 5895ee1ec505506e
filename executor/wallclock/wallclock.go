// Package wallclock separates wall time from monotonic time. Wall time is compared with
// times of the cluster and sent to the engine; somebody may set it back or forward at any
// moment. Monotonic time measures how long something takes or waits. The result of time.Now
// has both, and arithmetic on it uses the monotonic reading: after the clock was set, the
// result differs from wall time.
package wallclock

import "time"

// New returns a clock of wall time: the times of now, without monotonic readings. nil
// stands for time.Now.
func New(now func() time.Time) func() time.Time {
	if now == nil {
		now = time.Now
	}
	return func() time.Time { return now().Round(0) }
}

// Of converts a moment of monotonic time, such as the end of a wait, to wall time. now
// is what the wall clock shows now. If the clock was set after the moment was computed,
// the result is still as far ahead as the wait has left.
func Of(moment, now time.Time) time.Time { return now.Add(time.Until(moment)) }
