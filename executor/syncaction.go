package executor

import (
	"slices"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// noAction is the action of a reconcile that does not count as a sync: the Job is gone or is
// left alone, or what is known of it is too old to act on.
const noAction = ""

// syncAction is the label "action" of a reconcile that ended with a decision, by the rules
// of the built-in controller (upstream syncJob and manageJob, v1.37). By these rules, the label
// names the step on active pods that was due, even if that step did nothing.
func syncAction(snap snapshot, d *jobpolicyv1.DecideJobResponse) string {
	switch spec := snap.req.GetSpec(); {
	case spec.GetDeleting() || endsBeforePods(d.GetVerdict()):
		return actionReconciling
	case len(d.GetDelete()) > 0:
		return actionDeleted
	case d.GetCreate() != nil:
		return actionCreated
	case snap.req.GetInFlight().GetCreates() > 0:
		return actionReconciling
	case spec.GetSuspend():
		return actionDeleted
	}
	switch missing := missingPods(snap); {
	case missing < 0:
		return actionDeleted
	case missing > 0:
		return actionCreated
	default:
		return actionTracking
	}
}

// endsBeforePods reports whether a Job ends by a rule that the built-in controller checks before
// it creates or deletes pods. It checks only the completions after that.
func endsBeforePods(v *jobpolicyv1.Verdict) bool {
	return v != nil && v.GetRule() != jobpolicyv1.Rule_RULE_COMPLETIONS_REACHED
}

// missingPods is how many more pods the Job should have; below 0: it has too many. The decision
// does not say this number: it may leave some pods for later, because a retry delay runs or the
// API server has refused to create pods.
func missingPods(snap snapshot) int64 {
	spec, pods := snap.req.GetSpec(), snap.req.GetPods()
	active, wanted, done := int64(pods.GetActive()), int64(spec.GetParallelism()), succeeded(snap)
	switch {
	case spec.Completions != nil:
		wanted = max(0, min(wanted, int64(spec.GetCompletions())-done))
	case done > 0:
		wanted = active
	}
	missing := wanted - active
	if missing > 0 && wire.ReplacesFailedOnly(snap.job) {
		missing = max(0, missing-int64(pods.GetTerminating()))
	}
	return missing
}

// succeeded is how many of the Job's pods have succeeded, whether or not the status has recorded
// them. For an Indexed Job, it is how many of its indexes have succeeded.
func succeeded(snap snapshot) int64 {
	status, unlisted := snap.req.GetStatus(), snap.req.GetUnlistedPods()
	recorded := map[string]bool{}
	for _, uid := range slices.Concat(status.GetUncounted().GetSucceeded(), status.GetUncounted().GetFailed()) {
		recorded[string(uid)] = true
	}
	var pods int64
	indexes := map[int32]bool{}
	for _, pod := range snap.req.GetUnaccountedPods() {
		if pod.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED && !recorded[string(pod.GetUid())] {
			pods++
			if pod.Index != nil {
				indexes[pod.GetIndex()] = true
			}
		}
	}
	if !wire.Indexed(snap.job) {
		return int64(status.GetSucceeded()) + int64(len(status.GetUncounted().GetSucceeded())) + pods + int64(unlisted.GetSucceeded())
	}
	end := snap.req.GetSpec().GetCompletions()
	wire.EachIndex(unlisted.GetSucceededIndexes(), func(ix int32) { indexes[ix] = true })
	done := countBelow(end, status.GetCompletedIndexes())
	for ix := range indexes {
		if ix < end && !contains(status.GetCompletedIndexes(), ix) {
			done++
		}
	}
	return done
}

// countBelow is how many indexes of a set are below end.
func countBelow(end int32, set *jobpolicyv1.IndexSet) int64 {
	var n int64
	for _, r := range set.GetRanges() {
		n += max(0, int64(min(r.GetLast(), end-1))-int64(r.GetFirst())+1)
	}
	return n
}

func contains(set *jobpolicyv1.IndexSet, ix int32) bool {
	_, found := slices.BinarySearchFunc(set.GetRanges(), ix, func(r *jobpolicyv1.IndexRange, ix int32) int {
		switch {
		case r.GetLast() < ix:
			return -1
		case r.GetFirst() > ix:
			return 1
		default:
			return 0
		}
	})
	return found
}
