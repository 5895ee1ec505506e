package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// manyPods is how many finished pods, and how many new ones, are worth a round
// each: a fifth of what a round may change. Pods are created before a status that
// counts them is written, and who creates many takes long over it: finished pods
// wait for that status, and those that finish meanwhile for the one after it.
func (s *snapshot) manyPods() int { return max(1, s.maxPodChanges/5) }

// maxCreations is how many pods a round creates. A status that lists finished pods
// by UID costs by their number, so that two of half the length are no dearer: such a
// Job's rounds are shorter, and its pods wait less. In an INDEXED Job a status costs
// the same however many pods it records.
func (s *snapshot) maxCreations() int {
	if s.indexed || !s.spacesStatuses() {
		return s.maxPodChanges
	}
	return max(1, s.maxPodChanges/2)
}

// recordsFirst says that the creation is left to a later decision, because this one
// would create many pods and records many finished ones; nil if it is not. The later
// one is the next, as only callers that space their statuses are made to come again;
// or, while more pods have finished than one status may record, the one that has
// made up for that.
func recordsFirst(s *snapshot, create *jobpolicyv1.CreatePods, l ledger) *jobpolicyv1.Wait {
	many := s.manyPods()
	if !s.spacesStatuses() || int(create.GetCount()) < many || unrecorded(s, l) < many {
		return nil
	}
	if !l.full && nextStatus(s, l).After(s.now) {
		return nil
	}
	w := wait(jobpolicyv1.WaitReason_WAIT_REASON_DEFERRED, "finished %ss are recorded before others are created: %d", s.noun, unrecorded(s, l))
	w.Step = jobpolicyv1.Step_STEP_CREATE_PODS
	return w
}
