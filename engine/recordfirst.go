package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// manyPods is a fifth of the pods that one decision may change. If at least so many
// pods have finished, and at least so many are to be created, one decision records and a
// later one creates. In a single decision the finished pods would wait: pods are created
// before the status is written, and creating many takes long.
func (s *snapshot) manyPods() int { return max(1, s.maxPodChanges/5) }

// maxCreations is how many pods one decision may create. It is smaller for a NON_INDEXED
// Job, so that its finished pods wait less for their status. That costs nothing, because
// its status lists finished pods by UID: two statuses of half the length cost no more
// than one. For an INDEXED Job a status costs the same however many pods it records.
func (s *snapshot) maxCreations() int {
	if s.indexed || !s.spacesStatuses() {
		return s.maxPodChanges
	}
	return max(1, s.maxPodChanges/2)
}

// recording is how many pods this decision records in the status. A pod that is only released, because the status accounts
// for it already or never has to, is none of them: nobody may wait for its release, which the API server may refuse.
func recording(s *snapshot, l ledger) int {
	n := l.newIndexes
	for _, uids := range [][][]byte{l.uncounted.GetSucceeded(), l.uncounted.GetFailed()} {
		for _, uid := range uids {
			if !s.recordedSucceeded[string(uid)] && !s.recordedFailed[string(uid)] {
				n++
			}
		}
	}
	return n
}

// recordsFirst says that a later decision creates the pods, because this one would
// create many and records many finished ones; nil if this one creates them. This
// happens only for callers that defer routine statuses. The later decision is the next
// one; if more pods have finished than one status may record, several decisions record
// them first.
func recordsFirst(s *snapshot, create *jobpolicyv1.CreatePods, l ledger) *jobpolicyv1.Wait {
	many := s.manyPods()
	if !s.spacesStatuses() || int(create.GetCount()) < many {
		return nil
	}
	records := recording(s, l)
	if records < many {
		return nil
	}
	if !l.full && nextStatus(s, l).After(s.now) {
		return nil
	}
	w := wait(jobpolicyv1.WaitReason_WAIT_REASON_DEFERRED, "finished pods are recorded before others are created: %d", records)
	w.Step = jobpolicyv1.Step_STEP_CREATE_PODS
	return w
}
