package engine

import (
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// followUp says when to ask again after a decision was carried out, if no event comes
// before. Most steps of a decision cause an event. Where none does, the caller asks
// again at once: if a limit has cut the decision short, if creations were left for
// later because pods are recorded first, if the next step of a verdict is due, and if
// failed pods may be recorded because their replacements exist.
func followUp(s *snapshot, p plan, resp *jobpolicyv1.DecideJobResponse) jobpolicyv1.FollowUp {
	creates, deletes, releases := int(resp.GetCreate().GetCount()), len(resp.GetDelete()), len(resp.GetRelease())
	removes, finished := deletes+len(resp.GetEnd()), len(resp.GetDeleteFinished())
	switch {
	case resp.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY:
		return jobpolicyv1.FollowUp_FOLLOW_UP_UNSPECIFIED
	case finished >= s.maxPodChanges, resp.GetStatus() != nil && p.countedNext:
		return jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE
	case creates == 0 && removes == 0 && releases == 0 && resp.GetStatus() == nil:
		return jobpolicyv1.FollowUp_FOLLOW_UP_NONE
	// Pods of indexes that fail now are deleted once the status says that.
	case resp.GetStatus() != nil && len(s.endingIndexes()) > 0:
		return jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE
	// Creating so many pods takes so long that other pods have ended meanwhile.
	case creates >= max(1, s.maxPodChanges/2), removes >= s.maxPodChanges, s.req.GetUnlistedPods() != nil:
		return jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE
	case creates == 0 && removes == 0 && (releases >= s.manyPods() || announces(s, resp) || s.idle()):
		return jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE
	case deletes > 0 || releases > 0:
		return jobpolicyv1.FollowUp_FOLLOW_UP_WHEN_CONFIRMED
	// The replaced pods wait for no event: the caller knows of its new pods before it sees them, and a pod
	// that is not scheduled has no other event.
	case len(resp.GetCreate().GetFailureCounts()) > 0:
		return jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE
	default:
		return jobpolicyv1.FollowUp_FOLLOW_UP_NONE
	}
}

// announces reports whether the next status has an additional condition, or a verdict where a
// condition of its type was not true. Then the next step is due.
func announces(s *snapshot, resp *jobpolicyv1.DecideJobResponse) bool {
	next := resp.GetStatus()
	if len(next.GetConditions()) > len(s.status.GetConditions()) {
		return true
	}
	return slices.ContainsFunc([]string{conditionFailureTarget, conditionSuccessCriteriaMet}, func(verdict string) bool {
		_, before := trueCondition(s.status, verdict)
		_, after := trueCondition(next, verdict)
		return after && !before
	})
}

// idle reports whether no pod of the Job is running, ending or being created. Then no
// event of a pod will come, and the Job may be able to finish.
func (s *snapshot) idle() bool {
	return s.pods.GetActive() == 0 && s.pods.GetTerminating() == 0 && s.creating() == 0
}
