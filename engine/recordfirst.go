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

// recordsFirst reports whether this round records many finished pods and leaves
// the creation of many to a later one: the next, as only callers that want a pause
// after a status are made to come again; or, while more pods have finished than
// one status may record, the one that has made up for that.
func recordsFirst(s *snapshot, p plan, l ledger) bool {
	many := s.manyPods()
	if !s.spacesStatuses() || int(p.create.GetCount()) < many || unrecorded(s, l) < many {
		return false
	}
	return l.full || !nextStatus(s, l).After(s.now)
}

// later is the plan without what it creates.
func (p plan) later(s *snapshot, l ledger) plan {
	w := wait(jobpolicyv1.WaitReason_WAIT_REASON_DEFERRED, "finished %ss are recorded before others are created: %d", s.noun, unrecorded(s, l))
	w.Step = jobpolicyv1.Step_STEP_CREATE_PODS
	p.waits = append(p.waits, w)
	p.active -= p.create.GetCount()
	p.create = nil
	return p
}
