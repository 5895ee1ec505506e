package hostnode

import "time"

// crashBackoff is the kubelet's crash back-off of one container: the first restart is immediate, the second waits for
// base since the end of the run before it, and every further one twice as long as the last, up to max. If a run
// ends more than twice max after the last restart, the next restart is immediate again. (client-go's flowcontrol.Backoff does
// this for many keys, behind a lock and with a clock of its own; here it is one value in the container's record.)
type crashBackoff struct {
	base, max time.Duration
	// delay before the next restart; 0 until there was one.
	delay time.Duration
	// restarted is when the container was last restarted.
	restarted time.Time
}

func (b *crashBackoff) expired(finished time.Time) bool {
	return b.delay == 0 || finished.Sub(b.restarted) > 2*b.max
}

// until is the time from which on a container that ended at finished may be started again.
func (b *crashBackoff) until(finished time.Time) time.Time {
	if b.expired(finished) {
		return finished
	}
	return finished.Add(b.delay)
}

// restart notes that a container that ended at finished is started again now.
func (b *crashBackoff) restart(finished, now time.Time) {
	next := min(2*b.delay, b.max)
	if b.expired(finished) {
		next = b.base
	}
	b.delay, b.restarted = next, now
}
