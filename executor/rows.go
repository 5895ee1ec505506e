package executor

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

const (
	// leastRows is the default of Config.LeastRows.
	leastRows = 1000
	// maxRowsPerIndex is a little less than the contract's limit, as the tracker may
	// list some more. With limits per index, failed pods stay unaccounted until they
	// are replaced: a shorter list could be full of those, and nothing else would be
	// seen.
	maxRowsPerIndex = 99000
	// regrowAfter is how long a list that was cut stays so. An engine that refused it
	// for its size is asked in vain that often; one that had too much to do, once.
	regrowAfter = 30 * time.Second
	// regrowStep is when the longer list follows.
	regrowStep = time.Second
)

// rowLimit is how many unaccounted pods are listed: enough to fill two rounds of
// the ledger, so that the cost of a round does not grow with the Job.
func (e *Executor) rowLimit(job *batchv1.Job) int {
	limit := max(e.cfg.LeastRows, 2*int(e.settings.GetMaxUncountedPods()))
	perIndex := job.Spec.BackoffLimitPerIndex != nil
	if perIndex {
		limit = maxRowsPerIndex
	}
	switch most := e.cfg.MaxRows; {
	case most > 0 && perIndex:
		limit = min(limit, max(e.cfg.LeastRows, most))
	case most > 0:
		limit = min(limit, most)
	}
	return limit
}

// rowsRefused halves how many pods are listed, but for so many at least, because a
// message with n of them was too large.
func (s *jobState) rowsRefused(n, least int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxRows, s.cutAt = max(least, n/2), time.Now()
}

// rowsAccepted takes in that a message with n pods was not too large. If there are
// no more to list, the limit goes; else it doubles with each such message up to
// most, once the refusal is some time ago.
func (s *jobState) rowsAccepted(n, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case n < s.maxRows:
		s.maxRows = 0
	case s.maxRows > 0 && time.Since(s.cutAt) >= regrowAfter:
		s.maxRows *= 2
	}
	if s.maxRows >= most {
		s.maxRows = 0
	}
}

// regrowth is when to look at a Job again that was to be looked at after some time:
// when more pods may be listed than the snapshot has, if that is earlier and it
// left some out.
func (e *Executor) regrowth(s *jobState, snap snapshot, after time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	allowed := e.rowLimit(snap.job)
	if s.maxRows > 0 {
		allowed = min(allowed, s.maxRows)
	}
	grown := len(snap.req.GetUnaccountedPods()) < allowed
	if snap.req.GetUnlistedPods() == nil || (!grown && s.maxRows == 0) {
		return after
	}
	regrow := regrowStep
	if !grown {
		regrow = max(regrow, time.Until(s.cutAt.Add(regrowAfter)))
	}
	if after == 0 {
		return regrow
	}
	return min(after, regrow)
}
