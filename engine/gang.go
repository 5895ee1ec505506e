package engine

import (
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// grouping says what of a Job's group is made for it (upstream getManagementMode, v1.37).
type grouping int

const (
	ungrouped grouping = iota
	// ownGroup: the Job declares how its pods are scheduled, and has all objects of the group.
	ownGroup
	// delegatedGroup: the Job's controller declares it, and leaves the PodGroup to the Job.
	delegatedGroup
)

func (s *snapshot) grouping() grouping {
	groups, spec := s.req.GetSettings().GetPodGroups(), s.spec
	switch {
	case groups == jobpolicyv1.PodGroups_POD_GROUPS_UNSPECIFIED || spec.GetHasSchedulingGroup():
		return ungrouped
	case spec.GetControlled() && spec.GroupTemplateName != nil:
		return delegatedGroup
	case spec.GetControlled() || groups == jobpolicyv1.PodGroups_POD_GROUPS_DECLARED && spec.GetScheduling() == nil:
		return ungrouped
	}
	return ownGroup
}

// planGang says to which group the pods of a running Job belong. It does so in every decision,
// because min_count may change while the Job runs. A Job that has not started gets its group even
// if it is suspended and creates no pods yet, because once the status says that it is suspended,
// the Job counts as started.
func planGang(s *snapshot, t tally, v verdict, p plan) *jobpolicyv1.Gang {
	mode := s.grouping()
	if mode == ungrouped || v.reached() || s.deleting() || s.held() {
		return nil
	}
	g := &jobpolicyv1.Gang{MayCreate: isNewJob(s)}
	if mode == delegatedGroup {
		g.TemplateName, g.MayCreate = proto.String(s.spec.GetGroupTemplateName()), hasNoPods(s)
		g.MinCount = s.runnable(t)
		g.MaxCount = g.MinCount
	} else if scheduling := s.spec.GetScheduling(); scheduling.GetPolicy() == jobpolicyv1.SchedulingPolicy_SCHEDULING_POLICY_GANG {
		g.MaxCount = s.declaredMinCount()
		g.MinCount = min(g.MaxCount, s.runnable(t))
	}
	if p.create != nil || s.creating() > 0 || s.pods.GetReady() < s.pods.GetActive() {
		g.MaxCount = g.MinCount
	} else if mode == delegatedGroup {
		g.MaxCount = max(g.MinCount, s.spec.GetParallelism())
	}
	return g
}

// declaredMinCount is the min_count of a gang as the Job declares it (upstream
// defaultMinCountForJob, v1.37).
func (s *snapshot) declaredMinCount() int32 {
	if scheduling := s.spec.GetScheduling(); scheduling.MinCount != nil {
		return scheduling.GetMinCount()
	}
	return max(1, s.spec.GetParallelism())
}

// runnable is how many pods of the Job can still run at the same time, at least 1. A gang of more
// would never start (kubernetes/kubernetes#142330).
func (s *snapshot) runnable(t tally) int32 {
	most := s.spec.GetParallelism()
	switch {
	case s.spec.Completions == nil && t.succeeded > 0:
		most = s.pods.GetActive()
	case s.indexed:
		left := int64(s.spec.GetCompletions()) - t.taken(t.succeededIndexes).Below(s.spec.GetCompletions()).Len()
		most = clamp32(min(int64(most), left))
	case s.spec.Completions != nil:
		most = clamp32(min(int64(most), int64(s.spec.GetCompletions())-t.succeeded))
	}
	return max(1, most)
}

// isNewJob reports whether nothing was ever done for the Job. No single fact shows
// this: pods may have been garbage-collected, a suspended Job has no start time, and
// a Job that was suspended early has no counts (upstream isNewJob, v1.37).
func isNewJob(s *snapshot) bool {
	st := s.status
	if st.GetStartTime() != nil || st.GetSucceeded() > 0 || !s.completed.Empty() || st.GetFailed() > 0 || hasCondition(st, conditionSuspended) {
		return false
	}
	return len(s.recordedSucceeded)+len(s.recordedFailed) == 0 && hasNoPods(s)
}

// hasNoPods reports whether no pod of the Job exists or is being created, overdue ones included. Then no pod is
// outside of a group that is made now.
func hasNoPods(s *snapshot) bool {
	return len(s.req.GetUnaccountedPods()) == 0 && s.req.GetUnlistedPods() == nil && s.idle() && len(s.lost) == 0
}
