// Package wallclock keeps the two clocks of a process apart. What is compared with
// times of the cluster, or sent to the engine, is wall time, which may be set back
// or forward at any moment. How long something takes, or has to wait, is monotonic
// time. time.Now has both, and arithmetic on it silently takes the latter: its
// result is not what the clock on the wall shows any more once that was set.
package wallclock

import "time"

// New returns now without monotonic readings. nil stands for time.Now.
func New(now func() time.Time) func() time.Time {
	if now == nil {
		now = time.Now
	}
	return func() time.Time { return now().Round(0) }
}

// Of is the wall time of a moment of time.Now, such as the end of a wait, on a
// clock that shows now. However that clock was set since the moment was worked
// out, it is as far ahead as the wait has left.
func Of(moment, now time.Time) time.Time { return now.Add(time.Until(moment)) }
