package engine

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A busy Job's pods end all the time, and a status write costs the API server as much
// as a write of a pod. The caller may therefore ask for a pause between routine writes.
// Nothing is lost meanwhile: the pods keep their finalizers, so the next snapshot of
// any caller includes them.

// A delivery is the part of the ledger and the publication that this decision
// returns.
type delivery struct {
	publication
	release [][]byte
	actions map[jobpolicyv1.PodFailurePolicyAction]int32
}

// deliver returns everything, or leaves a routine status for later. In that case it
// releases only pods that the current status already records (invariant I1).
func deliver(s *snapshot, v verdict, p plan, l ledger, pub publication) delivery {
	if !mayWait(s, v, p, l, pub) {
		return delivery{publication: pub, release: l.release, actions: l.actions}
	}
	w := waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_DEFERRED, nextStatus(s, l),
		"the next status may wait; finished pods that it will record: %d", unrecorded(s, l))
	w.Step = jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS
	return delivery{publication: publication{status: s.status, waits: []*jobpolicyv1.Wait{w}}, release: recorded(s, l)}
}

// mayWait reports whether the next status is routine and the caller has deferred such
// a write. A status is routine if it declares nothing and fewer pods are released than
// are still active. The status of a suspended Job that never ran is routine too.
func mayWait(s *snapshot, v verdict, p plan, l ledger, pub publication) bool {
	if !nextStatus(s, l).After(s.now) || sameStatus(pub.status, s.status) {
		return false
	}
	if v.reached() || s.deleting() {
		return false
	}
	if s.spec.GetSuspend() {
		return neverRan(s)
	}
	// Near the end of a Job more pods have ended than are left, and people wait for the
	// Job's end.
	if int(p.active) <= len(l.release) {
		return false
	}
	// A full ledger, and pods that are not listed yet, delay other pods.
	if l.full || s.req.GetUnlistedPods().GetSucceeded() > 0 || s.unlistedFailures() > 0 {
		return false
	}
	// Do not wait with a lower count: the API server accepts it only while the spec allows
	// it, and the spec may change. See succeededIndexes.
	if pub.status.GetSucceeded() < s.status.GetSucceeded() {
		return false
	}
	// Clients wait for the status that says that all pods are ready.
	if allUp(pub.status) && !allUp(s.status) {
		return false
	}
	return proto.Equal(pub.status.GetStartTime(), s.status.GetStartTime()) &&
		slices.EqualFunc(pub.status.GetConditions(), s.status.GetConditions(), func(a, b *jobpolicyv1.JobCondition) bool { return proto.Equal(a, b) })
}

// neverRan reports whether the Job never ran: its status has no condition of the
// engine's, no start time and no counts, and it has no pods. The client that created
// such a Job as suspended needs no status to know that it is suspended. It may update
// the Job at once, as queue controllers do, and a status write in between would make
// its update conflict. Unlike isNewJob, it also asks whether the status has a condition of the
// engine's or counts of active pods.
func neverRan(s *snapshot) bool {
	if slices.ContainsFunc(s.status.GetConditions(), func(c *jobpolicyv1.JobCondition) bool { return ownCondition(c.GetType()) }) {
		return false
	}
	none := s.pods.GetActive() == 0 && s.pods.GetTerminating() == 0 && s.creating() == 0 &&
		len(s.req.GetUnaccountedPods()) == 0 && s.req.GetUnlistedPods() == nil
	return none && s.status.GetStartTime() == nil && s.status.GetActive() == 0 && s.status.GetTerminating() == 0 &&
		s.status.GetSucceeded() == 0 && s.status.GetFailed() == 0 && s.status.GetUncounted() == nil
}

// nextStatus is when the caller wants the next routine status; zero if at once.
func nextStatus(s *snapshot, l ledger) time.Time {
	at, asked := s.deferredUntil(jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS)
	if !asked {
		return time.Time{}
	}
	record, earlier := s.deferredUntil(jobpolicyv1.Step_STEP_RECORD_PODS)
	if earlier && record.Before(at) && unrecorded(s, l) > 0 {
		return record
	}
	return at
}

// recorded are the pods that may be released without another status.
func recorded(s *snapshot, l ledger) (release [][]byte) {
	for _, uid := range l.release {
		if s.recordedSucceeded[string(uid)] || s.recordedFailed[string(uid)] {
			release = append(release, uid)
		}
	}
	return release
}

// unrecorded is how many pods may be released only after the next status is written.
func unrecorded(s *snapshot, l ledger) int { return len(l.release) - len(recorded(s, l)) }

// allUp reports whether all pods are ready and none has ended yet.
func allUp(status *jobpolicyv1.JobStatus) bool {
	ended := status.GetSucceeded() + status.GetFailed()
	uncounted := len(status.GetUncounted().GetSucceeded()) + len(status.GetUncounted().GetFailed())
	return status.GetActive() > 0 && status.GetReady() == status.GetActive() && ended == 0 && uncounted == 0
}
