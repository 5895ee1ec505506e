package engine

import "time"

// retryDelay is how long to wait after the last of n failures in a row: base,
// doubled with each failure after the first, at most limit.
func retryDelay(n int32, base, limit time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	delay := base
	for range n - 1 {
		if delay >= limit/2 {
			return limit
		}
		delay *= 2
	}
	return min(delay, limit)
}

// retryTime is when pods may be created again after n failures in a row, the
// last of which ended at last. ok is false if that time has come. It depends on
// facts in the cluster only, so no restart forgets it (invariant I10).
func retryTime(s *snapshot, n int32, last time.Time) (at time.Time, ok bool) {
	at = last.Add(retryDelay(n, s.podFailureBackoff, s.maxPodFailureBackoff))
	// A pod may claim to have ended in the future, because clocks differ. It holds
	// creation back until then, as upstream has it, but is looked at again after
	// one delay.
	if latest := s.now.Add(retryDelay(n, s.podFailureBackoff, s.maxPodFailureBackoff)); at.After(latest) {
		at = latest
	}
	return at, n > 0 && at.After(s.now)
}
