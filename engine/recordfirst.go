package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// manyPods is how many finished pods, and how many new pods, are enough to handle
// them in separate decisions: a fifth of what one decision may change. Pods are
// created before the status that counts them is written, and creating many takes
// long. Finished pods would wait for that status, and pods that finish meanwhile
// would wait for the next one.
func (s *snapshot) manyPods() int { return max(1, s.maxPodChanges/5) }

// maxCreations is how many pods a decision creates. The cost of a status that lists
// finished pods by UID grows with their number, so two statuses of half the length
// cost no more than one. A NON_INDEXED Job therefore has smaller decisions, and its
// finished pods wait less. For an INDEXED Job a status costs the same however many
// pods it records.
func (s *snapshot) maxCreations() int {
	if s.indexed || !s.spacesStatuses() {
		return s.maxPodChanges
	}
	return max(1, s.maxPodChanges/2)
}

// recordsFirst says that a later decision creates the pods, because this one would
// create many and records many finished ones; nil if this one creates them. This
// happens only for callers that space their statuses. The later decision is the next
// one; but while more pods have finished than one status may record, it is the first
// one that has caught up.
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
