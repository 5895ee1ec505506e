package engine

import "fmt"

// completionsReached: as many pods (for INDEXED: indexes) succeeded as
// spec.completions requires, and no pod is active. A work queue, which has no
// completions, needs one success. The rule waits while creations are in flight,
// because their pods have to be seen first (kubernetes/kubernetes#109429).
func completionsReached(f facts) answer {
	wanted := wantedSuccesses(f.snapshot)
	detail := fmt.Sprintf("%d of %d succeeded, %d active", f.tally.succeeded, wanted, f.pods.GetActive())
	if f.spec.Completions == nil {
		detail = fmt.Sprintf("%d succeeded, at least %d wanted, %d active", f.tally.succeeded, wanted, f.pods.GetActive())
	}
	switch {
	case f.tally.succeeded < wanted, f.pods.GetActive() > 0:
		return no(detail)
	case f.creating() > 0:
		return no(fmt.Sprintf("%s, creations in flight %d", detail, f.creating()))
	case f.spec.Completions == nil && f.undecidedDeletion():
		return no(detail + ", and a work queue that is being deleted does not become complete")
	}
	return succeedIfSeen(f, reasonCompletionsReached, "Reached expected number of succeeded pods", detail)
}

// wantedSuccesses is how many pods, or indexes, must succeed.
func wantedSuccesses(s *snapshot) int64 {
	if s.spec.Completions == nil {
		return 1
	}
	return int64(s.spec.GetCompletions())
}
