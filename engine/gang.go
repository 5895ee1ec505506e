package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// planGang says whether the pods of the plan are to be scheduled together. The
// gang of a Job that has not begun is asked for even if it creates no pods yet,
// because it is suspended: once the status says so, the Job has begun.
func planGang(s *snapshot, v verdict, p plan) *jobpolicyv1.Gang {
	if !s.req.GetSettings().GetGangScheduling() || v.reached() || s.deleting() || !gangShaped(s) {
		return nil
	}
	fresh := neverBegun(s)
	if p.create == nil && !fresh {
		return nil
	}
	return &jobpolicyv1.Gang{MinCount: s.spec.GetParallelism(), MayBegin: fresh}
}

// gangShaped reports whether a Job runs all its pods at once, one for each
// index, and nobody else has grouped them (upstream IsGangSchedulingCandidate,
// v1.36).
func gangShaped(s *snapshot) bool {
	return s.indexed && s.spec.GetParallelism() > 1 && s.spec.GetCompletions() == s.spec.GetParallelism() &&
		!s.spec.GetHasSchedulingGroup()
}

// neverBegun reports whether nothing was ever done for the Job. Each of the
// traces alone has gaps: pods may have been collected, a suspended Job has no
// start time, and what was suspended early has no counts (upstream isNewJob,
// v1.36).
func neverBegun(s *snapshot) bool {
	st := s.status
	if st.GetStartTime() != nil || st.GetSucceeded() > 0 || !s.completed.Empty() || st.GetFailed() > 0 || hasCondition(st, conditionSuspended) {
		return false
	}
	if len(s.recordedSucceeded)+len(s.recordedFailed) > 0 || len(s.req.GetUnaccountedPods()) > 0 || s.req.GetUnlistedPods() != nil {
		return false
	}
	return s.pods.GetActive() == 0 && s.pods.GetTerminating() == 0 && s.creating() == 0
}
