package tracker

import "time"

const (
	// RegrowAfter is how long a list stays short after a refusal. So an engine that can never
	// take a longer list refuses only one request in each such period. An engine that was
	// only overloaded has recovered by then.
	RegrowAfter = 30 * time.Second
	// regrowStep is the shortest delay before a request with a longer list.
	regrowStep = time.Second
)

// rows limit how many pods a request lists after the engine has refused a request for its
// size.
type rows struct {
	// max is the limit since cutAt; 0: there is no limit.
	max   int
	cutAt time.Time
}

// MaxRows is how many pods a request may list: most, or less while there is a limit.
func (j *Job) MaxRows(most int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rows.limit(most)
}

// limit is MaxRows.
func (r *rows) limit(most int) int {
	if r.max > 0 {
		return min(most, r.max)
	}
	return most
}

// RowsRefused records that a request with n pods was too large. The limit becomes half of n,
// but not less than least.
func (j *Job) RowsRefused(n, least int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rows.max, j.rows.cutAt = max(least, n/2), time.Now()
}

// RowsAccepted records that a request with n pods was not too large. If it listed all pods,
// the limit ends. Otherwise, once the refusal is RegrowAfter ago, each such request doubles
// the limit, until it reaches most and ends.
func (j *Job) RowsAccepted(n, most int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &j.rows
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

// RowsRegrowth is how long to wait until a request may list more than n pods. It is called after a
// request that listed n pods and left some out. 0: no refusal limits the list.
func (j *Job) RowsRegrowth(n, most int) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &j.rows
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
