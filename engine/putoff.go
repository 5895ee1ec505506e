package engine

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A busy Job's pods end all the time, and each status write costs the API server
// as much as a pod. The caller may therefore ask for a pause between routine
// writes. What waits is not lost: the pods keep their finalizers, so the next
// snapshot shows them again, to whoever asks.

// A delivery is what of the ledger and the publication goes out with this decision.
type delivery struct {
	publication
	release [][]byte
	actions map[jobpolicyv1.PodFailurePolicyAction]int32
}

// deliver sends out everything, or leaves a routine status for later. Then only pods
// that the status of now records are released (invariant I1).
func deliver(s *snapshot, v verdict, p plan, l ledger, pub publication) delivery {
	if !mayWait(s, v, p, l, pub) {
		return delivery{publication: pub, release: l.release, actions: l.actions}
	}
	w := waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_DEFERRED, nextStatus(s, l),
		"the next status has time; finished %ss that it will record: %d", s.noun, unrecorded(s, l))
	w.Step = jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS
	return delivery{publication: publication{status: s.status, waits: []*jobpolicyv1.Wait{w}}, release: recorded(s, l)}
}

// mayWait reports whether the next status is routine, and the caller wants no
// such write yet. It is routine if it decides nothing and most pods are still
// active.
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
	// Towards its end, what has ended outweighs what is left, and the Job's end is
	// what people wait for.
	if int(p.active) <= len(l.release) {
		return false
	}
	// A ledger that takes no more, or that has not seen all, holds others up.
	if l.full || s.req.GetUnlistedPods().GetSucceeded() > 0 || s.unlistedFailures() > 0 {
		return false
	}
	// Indexes that were given up go with the spec of now; see succeededIndexes.
	if pub.status.GetSucceeded() < s.status.GetSucceeded() {
		return false
	}
	// That all pods are up is what others wait for to go on.
	if allUp(pub.status) && !allUp(s.status) {
		return false
	}
	return proto.Equal(pub.status.GetStartTime(), s.status.GetStartTime()) &&
		slices.EqualFunc(pub.status.GetConditions(), s.status.GetConditions(), func(a, b *jobpolicyv1.JobCondition) bool { return proto.Equal(a, b) })
}

// neverRan reports whether the Job has no past: no status of consequence, and no
// pods. That such a Job is suspended is no news to who made it so, and may update
// it at once, as queue controllers do: a status would be in its way.
func neverRan(s *snapshot) bool {
	for _, c := range s.status.GetConditions() {
		if ownCondition(c.GetType()) {
			return false
		}
	}
	none := s.pods.GetActive() == 0 && s.pods.GetTerminating() == 0 && s.creating() == 0 &&
		len(s.req.GetUnaccountedPods()) == 0 && s.req.GetUnlistedPods() == nil
	return none && s.status.GetStartTime() == nil && s.status.GetActive() == 0 && s.status.GetTerminating() == 0 &&
		s.status.GetSucceeded() == 0 && s.status.GetFailed() == 0 && s.status.GetUncounted() == nil
}

// nextStatus is when the caller wants the next routine status; zero if at once.
func nextStatus(s *snapshot, l ledger) time.Time {
	at, asked := s.deferredUntil(jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS)
	if !asked || s.atomicRelease() {
		return time.Time{}
	}
	record, earlier := s.deferredUntil(jobpolicyv1.Step_STEP_RECORD_PODS)
	if earlier && record.Before(at) && unrecorded(s, l) > 0 {
		return record
	}
	return at
}

// recorded is what may be released without another status.
func recorded(s *snapshot, l ledger) (release [][]byte) {
	for _, uid := range l.release {
		if s.recordedSucceeded[string(uid)] || s.recordedFailed[string(uid)] {
			release = append(release, uid)
		}
	}
	return release
}

// unrecorded is how many pods are released with the next status, and not before.
func unrecorded(s *snapshot, l ledger) int { return len(l.release) - len(recorded(s, l)) }

// allUp reports whether all pods are ready and none has ended yet.
func allUp(status *jobpolicyv1.JobStatus) bool {
	ended := status.GetSucceeded() + status.GetFailed()
	uncounted := len(status.GetUncounted().GetSucceeded()) + len(status.GetUncounted().GetFailed())
	return status.GetActive() > 0 && status.GetReady() == status.GetActive() && ended == 0 && uncounted == 0
}
