package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// planGang says whether the pods of the plan are to be scheduled together. A Job that
// has not started gets its gang even if it is suspended and creates no pods yet,
// because once the status says that it is suspended, the Job counts as started.
func planGang(s *snapshot, v verdict, p plan) *jobpolicyv1.Gang {
	if !s.req.GetSettings().GetGangScheduling() || v.reached() || s.deleting() || !gangShaped(s) {
		return nil
	}
	fresh := isNewJob(s)
	if p.create == nil && !fresh {
		return nil
	}
	return &jobpolicyv1.Gang{MinCount: s.spec.GetParallelism(), MayCreate: fresh}
}

// gangShaped reports whether a Job runs all its pods at once, one for each index, and
// no one else has grouped them (upstream IsGangSchedulingCandidate, v1.36).
func gangShaped(s *snapshot) bool {
	return s.indexed && s.spec.GetParallelism() > 1 && s.spec.GetCompletions() == s.spec.GetParallelism() &&
		!s.spec.GetHasSchedulingGroup()
}

// isNewJob reports whether nothing was ever done for the Job. No single fact shows
// this: pods may have been garbage-collected, a suspended Job has no start time, and
// a Job that was suspended early has no counts (upstream isNewJob, v1.36).
func isNewJob(s *snapshot) bool {
	st := s.status
	if st.GetStartTime() != nil || st.GetSucceeded() > 0 || !s.completed.Empty() || st.GetFailed() > 0 || hasCondition(st, conditionSuspended) {
		return false
	}
	if len(s.recordedSucceeded)+len(s.recordedFailed) > 0 || len(s.req.GetUnaccountedPods()) > 0 || s.req.GetUnlistedPods() != nil {
		return false
	}
	return s.pods.GetActive() == 0 && s.pods.GetTerminating() == 0 && s.creating() == 0
}
