package engine

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/engine/timestamp"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A plan is what to do with the pods, and the counts that result if all of it
// is done.
type plan struct {
	create    *jobpolicyv1.CreatePods
	deletions []deletion
	ends      []podEnd
	// releaseFirst says whether removed pods lose their finalizer before they
	// are deleted, so that they are not counted as failed.
	releaseFirst bool
	// finished are the UIDs of finished pods to delete (prune). countedNext: further ones are to be deleted once
	// the next status counts them.
	finished    [][]byte
	countedNext bool
	// active, ready and terminating are the counts after the plan.
	active, ready, terminating int32
	// wanted is how many pods should be active; nil if the plan does not depend on that. limit is how many may
	// be, those of failed indexes included (activeLimit).
	wanted *int32
	limit  int32
	waits  []*jobpolicyv1.Wait
	// gang is the group of the pods; nil: none.
	gang *jobpolicyv1.Gang
	// needs is not empty if the plan cannot be made without more data.
	needs []jobpolicyv1.Requirement
	// mayCreate says that the Job runs and that the plan deletes no pod: one decision
	// never both deletes and creates pods.
	mayCreate bool
}

// planDeletions plans which pods to delete.
func planDeletions(s *snapshot, t tally, v verdict) plan {
	if v.reached() {
		return planEnding(s, v)
	}
	p := unchanged(s)
	switch {
	case s.deleting():
		return p.needRowsOf(s, s.pods.GetTrackedActive())
	case s.spec.GetSuspend():
		return p.remove(s, int(s.pods.GetActive()), jobpolicyv1.DeleteReason_DELETE_REASON_SUSPENDED)
	case s.held():
		p.waits = append(p.waits, s.policyWait())
		return p
	}
	p.limit = activeLimit(s, t)
	p.wanted = proto.Int32(wantedActive(s, t, p.limit))
	excess := int(s.pods.GetActive() - p.limit)
	if excess > 0 || s.badIndexes() > 0 {
		return p.remove(s, max(excess, 0), jobpolicyv1.DeleteReason_DELETE_REASON_TOO_MANY)
	}
	if s.endsUnstarted() {
		return p.endUnstarted(s)
	}
	p.mayCreate = true
	return p
}

// unchanged is the plan that does nothing.
func unchanged(s *snapshot) plan {
	return plan{active: s.pods.GetActive(), ready: s.pods.GetReady(), terminating: s.pods.GetTerminating()}
}

// activeLimit is how many pods may be active now. A work queue starts no more
// pods once one has succeeded, but lets the others finish. Failed indexes count, as upstream's do
// (manageJob, v1.37): so the pods that such an index still has take no place from others.
func activeLimit(s *snapshot, t tally) int32 {
	if s.spec.Completions == nil {
		if t.succeeded > 0 {
			return s.pods.GetActive()
		}
		return s.spec.GetParallelism()
	}
	return clamp32(min(int64(s.spec.GetParallelism()), int64(s.spec.GetCompletions())-t.succeeded))
}

// wantedActive is how many of these pods should be active: an index that has succeeded or failed gets no
// more pods.
func wantedActive(s *snapshot, t tally, limit int32) int32 {
	if !s.indexed {
		return limit
	}
	over := t.taken(indexset.Set{}).Minus(s.active.Union(s.inFlight))
	return clamp32(min(int64(limit), int64(s.spec.GetCompletions())-over.Len()))
}

// badIndexes is how many active pods of an INDEXED Job must go because they share an
// index or have none in range.
func (s *snapshot) badIndexes() int64 {
	if !s.indexed {
		return 0
	}
	return int64(s.pods.GetActive()) - s.active.Len()
}

// needRowsOf asks for the rows of active pods if the plan has to act on n of them and
// the caller did not send them.
func (p plan) needRowsOf(s *snapshot, n int32) plan {
	if n > 0 && s.req.GetActivePods() == nil {
		p.needs = append(p.needs, jobpolicyv1.Requirement_REQUIREMENT_ACTIVE_PODS)
	}
	return p
}

// remove plans the deletion of excess pods, and of those with a bad index.
func (p plan) remove(s *snapshot, excess int, reason jobpolicyv1.DeleteReason) plan {
	p = p.needRowsOf(s, s.pods.GetActive())
	p.deletions = s.choosePodsToDelete(excess)
	p.releaseFirst = true
	if reason == jobpolicyv1.DeleteReason_DELETE_REASON_SUSPENDED {
		for i := range p.deletions {
			p.deletions[i].reason = reason
		}
	}
	return p.limited(s)
}

// limited reduces the deletions and the pods to end to what one decision may delete, or to none while the
// caller defers deletions, and adjusts the counts. A pod that is to end stays active until it has.
func (p plan) limited(s *snapshot) plan {
	changes, what := len(p.deletions)+len(p.ends), "deleted"
	if len(p.ends) > 0 {
		what = "deleted or ended"
	}
	if later := s.deferred(jobpolicyv1.Step_STEP_DELETE_PODS, "to be %s: %d; pods could not be deleted, the caller tries again later",
		what, changes); changes > 0 && later != nil {
		p.waits = append(p.waits, later)
		p.deletions, p.ends = nil, nil
		return p
	}
	if left := changes - s.maxPodChanges; left > 0 {
		p.deletions = p.deletions[:min(len(p.deletions), s.maxPodChanges)]
		p.ends = p.ends[:min(len(p.ends), s.maxPodChanges-len(p.deletions))]
		p.waits = append(p.waits, wait(jobpolicyv1.WaitReason_WAIT_REASON_CHANGE_LIMIT,
			"still to be %s: %d; one decision deletes at most %d", what, left, s.maxPodChanges))
	}
	n := int32(len(p.deletions))
	p.active -= n
	p.terminating = clamp32(int64(p.terminating) + int64(n))
	for _, d := range p.deletions {
		if d.pod.GetReady() {
			p.ready--
		}
	}
	p.ready = max(0, min(p.ready, p.active))
	return p
}

// planCreations adds the pods to create: at most wanted − active − in flight
// (invariant I6), and none before the retry delay has passed. If there are many to
// create and the ledger records many, a later decision creates them (recordsFirst).
func planCreations(s *snapshot, t tally, p plan, l ledger) plan {
	if !p.mayCreate {
		return p
	}
	room := int64(p.limit) - int64(s.pods.GetActive()) - int64(s.creating())
	if s.replaceFailedOnly() {
		room -= int64(s.pods.GetTerminating())
	}
	if s.creating() > 0 {
		p.waits = append(p.waits, wait(jobpolicyv1.WaitReason_WAIT_REASON_CREATES_IN_FLIGHT,
			"creations in flight: %d", s.creating()))
	}
	if room <= 0 {
		return p.explainNoRoom(s)
	}
	if w := creationWait(s, t); w != nil {
		p.waits = append(p.waits, w)
		return p
	}
	c := newPods(s, t, int32(room))
	p.waits = append(p.waits, c.waits...)
	if first := recordsFirst(s, c.create, l); first != nil {
		p.waits = append(p.waits, first)
		return p
	}
	if c.left > 0 {
		p.waits = append(p.waits, wait(jobpolicyv1.WaitReason_WAIT_REASON_CHANGE_LIMIT,
			"still to be created: %d; one decision creates at most %d", c.left, s.maxCreations()))
	}
	if p.create = c.create; p.create != nil && s.spec.GetOptions() != nil {
		p.create.ActiveDeadlineSeconds = s.spec.GetOptions().TryDeadlineSeconds
		p.create.Raised = raise(s, p.create)
	}
	p.active += c.create.GetCount()
	return p
}

// creations are pods to create.
type creations struct {
	create *jobpolicyv1.CreatePods // nil: none
	// waits are those of pods that cannot be created yet.
	waits []*jobpolicyv1.Wait
	// left is how many more pods could be created now if one decision could create any
	// number. If it is not 0, create has as many pods as one decision may create.
	left int64
}

// newPods are pods to create, if there is room for so many.
func newPods(s *snapshot, t tally, room int32) creations {
	if s.indexed {
		return newIndexes(s, t, room)
	}
	n := min(room, int32(s.maxCreations()))
	return creations{create: &jobpolicyv1.CreatePods{Count: n, AfterFailures: t.failed > 0}, left: int64(room - n)}
}

func (p plan) explainNoRoom(s *snapshot) plan {
	if s.replaceFailedOnly() && s.pods.GetTerminating() > 0 && int64(*p.wanted) > int64(s.pods.GetActive())+int64(s.creating()) {
		p.waits = append(p.waits, wait(jobpolicyv1.WaitReason_WAIT_REASON_REPLACEMENT_POLICY,
			"pods being deleted, which are replaced only when they have ended: %d", s.pods.GetTerminating()))
	}
	return p
}

// creationWait says why no pod may be created now; nil if pods may be.
func creationWait(s *snapshot, t tally) *jobpolicyv1.Wait {
	if s.optionsLost() {
		return s.policyWait()
	}
	if later := s.deferred(jobpolicyv1.Step_STEP_CREATE_PODS, "pods could not be created; the caller tries again later"); later != nil {
		return later
	}
	// With limits per index, newIndexes leaves out the indexes of these.
	if failed := s.uncertainFailures(); failed > 0 && !(s.perIndex() && s.knowsUnlistedIndexes()) {
		return wait(jobpolicyv1.WaitReason_WAIT_REASON_UNLISTED_PODS, "finished pods that the request does not list yet: %d", failed)
	}
	if s.perIndex() {
		return nil
	}
	at, waiting := s.backoff.nextPod(s.now, t.retry)
	if !waiting {
		return nil
	}
	return waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_POD_FAILURE_BACKOFF, at,
		"failures in a row: %d; next try %s after the last one", t.retry.consecutive,
		s.backoff.delay(t.retry))
}

// planEnding is the plan for a Job with a verdict: once the interim condition is
// written, every active pod is deleted, or ended (endPods). Their finalizers stay until the ledger has
// recorded them.
//
// The pods of a Job that is being deleted are released but not deleted: deleting them
// is up to whoever deletes the Job.
func planEnding(s *snapshot, v verdict) plan {
	p := unchanged(s)
	if !interimWritten(s, v) {
		return p
	}
	if s.deleting() {
		return p.needRowsOf(s, s.pods.GetTrackedActive())
	}
	p = p.needRowsOf(s, s.pods.GetActive())
	p.deletions = s.choosePodsToDelete(int(s.pods.GetActive()))
	for i := range p.deletions {
		p.deletions[i].reason = jobpolicyv1.DeleteReason_DELETE_REASON_JOB_FINISHED
	}
	if s.endsPods(v) {
		p = p.endPods(s)
	}
	return p.limited(s)
}

func wait(reason jobpolicyv1.WaitReason, format string, args ...any) *jobpolicyv1.Wait {
	return &jobpolicyv1.Wait{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

func waitUntil(reason jobpolicyv1.WaitReason, at time.Time, format string, args ...any) *jobpolicyv1.Wait {
	w := wait(reason, format, args...)
	w.Until = timestamp.Of(at)
	return w
}
