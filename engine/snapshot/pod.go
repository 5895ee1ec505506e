package snapshot

import (
	"time"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// Pod holds what the engine reads about one pod.
type Pod = podfacts.Pod

// A pod is a Pod with what follows from its fields.
type pod podfacts.Pod

func (p *pod) ended() bool {
	return p.Phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || p.Phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED
}

func (p *pod) succeeded() bool { return p.Phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED }

func (p *pod) active() bool { return !p.ended() && !p.Deleting }

func (p *pod) terminating() bool { return !p.ended() && p.Deleting }

// unaccounted reports whether the pod needs a row of the ledger.
func (p *pod) unaccounted() bool { return p.Tracked && (p.ended() || p.Deleting) }

func (p *pod) phase() jobpolicyv1.PodPhase {
	if p.Phase == jobpolicyv1.PodPhase_POD_PHASE_UNSPECIFIED {
		return jobpolicyv1.PodPhase_POD_PHASE_PENDING
	}
	return p.Phase
}

// finished is UnaccountedPod.finished_time: never before the pod was created, because
// otherwise a node with a slow clock would make the retry delay end too early.
func (p *pod) finished() time.Time {
	at := p.reportedEnd()
	if at.Before(p.Created) {
		at = p.Created
	}
	if at.IsZero() {
		return time.Unix(0, 0)
	}
	return at
}

// reportedEnd is when the pod ended, as far as that is known; zero if it is not known.
func (p *pod) reportedEnd() time.Time {
	switch {
	case !p.Finished.IsZero():
		return p.Finished
	case !p.Ready && !p.UnreadySince.IsZero():
		return p.UnreadySince
	case p.Deleting:
		return p.DeletionRequested
	default:
		return time.Time{}
	}
}

// validIndex is the pod's index if an index set can hold it.
func (p *pod) validIndex() *int32 {
	if p.Index == nil || *p.Index < 0 || *p.Index > indexset.Max {
		return nil
	}
	return p.Index
}
