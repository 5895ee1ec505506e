package clock

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Backoff is the delay before something that failed is tried again: Limits.First, doubled
// with each failure in a row, up to Limits.Max. The zero value has not failed. It wraps
// wait.Backoff, which has the delays but does not know when the last one ends.
type Backoff struct {
	delays wait.Backoff
	until  time.Time
}

// Limits bound the delays of a Backoff: First is the delay after the first failure in a row,
// Max the longest delay. A First above Max counts as Max.
type Limits struct{ First, Max time.Duration }

// Failed begins the next delay, and returns how long it is.
func (b *Backoff) Failed(limits Limits) time.Duration {
	if b.delays.Steps == 0 {
		b.delays = wait.Backoff{Duration: min(limits.First, limits.Max), Factor: 2, Steps: math.MaxInt, Cap: limits.Max}
	}
	delay := b.delays.Step()
	b.delays.Steps = math.MaxInt // Step sets it to 0 once the delay has reached its limit.
	b.until = time.Now().Add(delay)
	return delay
}

// FailedForLong begins a delay of limits.Max, for a failure that a new try cannot mend, and
// returns it.
func (b *Backoff) FailedForLong(limits Limits) time.Duration {
	b.Failed(limits)
	b.until = time.Now().Add(limits.Max)
	return limits.Max
}

// Shorten ends the delay after this time at the latest, and returns how long it is now; 0 if it has ended. The
// delay after the next failure is not shorter for that.
func (b *Backoff) Shorten(delay time.Duration) time.Duration {
	now := time.Now()
	if until := now.Add(delay); until.Before(b.until) {
		b.until = until
	}
	return max(0, b.until.Sub(now))
}

// Reset ends the delay. The next failure is a first one.
func (b *Backoff) Reset() { *b = Backoff{} }

// Progressed makes the next failure a first one. It does not end the delay.
func (b *Backoff) Progressed() { b.delays = wait.Backoff{} }

// Until is when the last delay ends or has ended; the zero time after Reset.
func (b *Backoff) Until() time.Time { return b.until }

// Active reports whether the last delay has not ended yet.
func (b *Backoff) Active() bool { return time.Now().Before(b.until) }

// Failing reports whether there was a failure since the last success or progress.
func (b *Backoff) Failing() bool { return b.delays.Steps != 0 }
