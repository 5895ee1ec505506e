package state

import (
	"sync"
	"time"
)

const (
	// RegrowAfter is how long a list that was cut stays so. An engine that refused it for
	// its size is asked in vain that often; one that had too much to do, once.
	RegrowAfter = 30 * time.Second
	// regrowStep is when the longer list follows.
	regrowStep = time.Second
)

// Rows limits how many pods a request lists, after the engine has refused a request.
type Rows struct {
	mu sync.Mutex
	// max is the limit since cutAt; 0: there is none.
	max   int
	cutAt time.Time
}

// Max is how many pods a request lists, of at most most.
func (r *Rows) Max(most int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit(most)
}

// limit needs r.mu.
func (r *Rows) limit(most int) int {
	if r.max > 0 {
		return min(most, r.max)
	}
	return most
}

// Refused halves how many pods are listed, but not to fewer than least, because a
// message with n of them was too large.
func (r *Rows) Refused(n, least int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.max, r.cutAt = max(least, n/2), time.Now()
}

// Accepted records that a message with n pods was not too large. If there are no more
// to list, the limit goes; else it doubles with each such message up to most, once the
// refusal is some time ago.
func (r *Rows) Accepted(n, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case n < r.max:
		r.max = 0
	case r.max > 0 && time.Since(r.cutAt) >= RegrowAfter:
		r.max *= 2
	}
	if r.max >= most {
		r.max = 0
	}
}

// Regrowth is when a request may list more pods than the n of one that left some out;
// 0: no limit has cut it.
func (r *Rows) Regrowth(n, most int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	grown := n < r.limit(most)
	switch {
	case grown:
		return regrowStep
	case r.max == 0:
		return 0
	default:
		return max(regrowStep, time.Until(r.cutAt.Add(RegrowAfter)))
	}
}
