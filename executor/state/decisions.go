package state

import (
	"sync"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Decision is the last decision on a Job. The explanations are encoded, because every
// finished Job has them and hardly anybody reads them.
type Decision struct {
	Time        time.Time
	Explanation []byte
	// Verdict is the explanation that says how the Job ends, and why; nil: it does not
	// end yet.
	Verdict []byte
}

// after makes the record of a decision. verdict says how the Job ends; nil if it does
// not end yet. Once a verdict is announced, a decision only repeats it; what led to it is
// said by an earlier one, which nobody knows any more after a restart.
func (d *Decision) after(at time.Time, verdict *jobpolicyv1.Verdict, explanation []byte) *Decision {
	r := &Decision{Time: at, Explanation: explanation}
	switch {
	case verdict.GetRepeated() && d != nil && d.Verdict != nil:
		r.Verdict = d.Verdict
	case verdict != nil:
		r.Verdict = explanation
	}
	return r
}

// Decisions is what is known of the engine's decisions on a Job.
type Decisions struct {
	mu   sync.Mutex
	last *Decision
	// requests is how many requests were made.
	requests uint64
	// rejected is the generation that the engine rejected last.
	rejected int64
	closed   bool
}

// Request returns the number of the next request.
func (d *Decisions) Request() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests++
	return d.requests
}

// Rejected records that the engine rejects a generation of the Job, and reports whether
// that is news.
func (d *Decisions) Rejected(generation int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.rejected == generation && generation != 0
	d.rejected = generation
	return !known
}

// Record records a decision with its encoded explanation.
func (d *Decisions) Record(at time.Time, verdict *jobpolicyv1.Verdict, explanation []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.last = d.last.after(at, verdict, explanation)
	}
}

// Last returns the last decision; nil if there is none, or the Job is gone.
func (d *Decisions) Last() *Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// close forgets the last decision for good: the Job is gone.
func (d *Decisions) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last, d.closed = nil, true
}
