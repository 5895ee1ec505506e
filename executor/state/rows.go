package state

import (
	"sync"
	"time"
)

const (
	// RegrowAfter is how long a list stays short after a refusal. So an engine that can never
	// take a longer list refuses only one request in each such period. An engine that was
	// only overloaded has recovered by then.
	RegrowAfter = 30 * time.Second
	// regrowStep is the shortest delay before a request with a longer list.
	regrowStep = time.Second
)

// Rows limits how many pods a request lists after the engine has refused a request for its
// size.
type Rows struct {
	mu sync.Mutex
	// max is the limit since cutAt; 0: there is no limit.
	max   int
	cutAt time.Time
}

// Max is how many pods a request may list: most, or less while there is a limit.
func (r *Rows) Max(most int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit(most)
}

// limit is Max; r.mu must be held.
func (r *Rows) limit(most int) int {
	if r.max > 0 {
		return min(most, r.max)
	}
	return most
}

// Refused records that a request with n pods was too large. The limit becomes half of n,
// but not less than least.
func (r *Rows) Refused(n, least int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.max, r.cutAt = max(least, n/2), time.Now()
}

// Accepted records that a request with n pods was not too large. If it listed all pods,
// the limit ends. Otherwise, once the refusal is RegrowAfter ago, each such request doubles
// the limit, until it reaches most and ends.
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

// Regrowth is how long to wait until a request may list more than n pods. It is called after a
// request that listed n pods and left some out. 0: no refusal limits the list.
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
