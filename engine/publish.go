package engine

import (
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A publication is the next status, with its events and waits.
type publication struct {
	status *jobpolicyv1.JobStatus
	events []*jobpolicyv1.JobEvent
	waits  []*jobpolicyv1.Wait
}

// publish builds the next status: the counts of the plan and the ledger, and
// as much of the verdict as may be declared yet (invariant I4), with how the Job failed if its options ask for that.
func publish(s *snapshot, t tally, v verdict, p plan, l ledger, end *jobpolicyv1.JobEnd) publication {
	pub := publication{status: withoutLists(s.status)}
	pub.countPods(s, t, p, l)
	held := s.held() && !v.reached()
	if s.status.GetStartTime() == nil && !s.spec.GetSuspend() && !held {
		pub.status.StartTime = s.second()
	}
	if !v.reached() {
		if !held && !aboutToComplete(s, t, p) {
			pub.suspension(s)
		}
		if !held {
			pub.started(s)
		}
		return pub
	}
	if !interimWritten(s, v) {
		pub.setCondition(s, interimCondition(v), v.reason, v.message, true)
		if end != nil && s.spec.GetOptions().GetEndCondition() {
			pub.setCondition(s, jobend.ConditionType, jobend.ClassName(end.GetClass()), jobend.Message(end), true)
		}
		pub.waits = append(pub.waits, wait(jobpolicyv1.WaitReason_WAIT_REASON_INTERIM_CONDITION,
			"condition %s is written first", interimCondition(v)))
		return pub
	}
	if w := terminalWait(s, p, l); w != nil {
		pub.waits = append(pub.waits, w)
		return pub
	}
	pub.finish(s, v)
	return pub
}

func (pub *publication) countPods(s *snapshot, t tally, p plan, l ledger) {
	next := pub.status
	next.Active = p.active
	next.Ready = proto.Int32(p.ready)
	next.Terminating = proto.Int32(p.terminating)
	next.Succeeded = l.succeeded
	next.Failed = l.failed
	// An empty list is left out, except for failed indexes.
	if !l.empty() {
		next.Uncounted = l.uncounted
	}
	if !t.succeededIndexes.Empty() {
		next.CompletedIndexes = t.succeededIndexes.Message()
	}
	if s.perIndex() {
		next.FailedIndexes = t.failedIndexes.Message()
	}
}

// aboutToComplete reports whether enough pods have succeeded and no pod will be active
// after this decision. Such a Job completes next, so no suspension or resumption is
// reported.
func aboutToComplete(s *snapshot, t tally, p plan) bool {
	return p.active == 0 && s.creating() == 0 && t.succeeded >= wantedSuccesses(s)
}

// suspension keeps the condition Suspended in step with spec.suspend. The start time
// is when the Job last started or resumed. It is set again when the Job resumes, so
// that the deadline does not include the time before. It is removed when the Job is
// suspended, unless the caller's settings keep it.
func (pub *publication) suspension(s *snapshot) {
	if s.deleting() {
		return
	}
	if s.spec.GetSuspend() {
		if pub.setCondition(s, conditionSuspended, reasonJobSuspended, "Job suspended", true) {
			pub.event(jobpolicyv1.EventType_EVENT_TYPE_NORMAL, eventSuspended, "Job suspended")
			if !s.req.GetSettings().GetKeepStartTimeOnSuspend() {
				pub.status.StartTime = nil
			}
		}
		return
	}
	unannounced := s.resumedUnannounced()
	if unannounced {
		pub.setCondition(s, conditionSuspended, reasonJobSuspended, "Job suspended", true)
		pub.event(jobpolicyv1.EventType_EVENT_TYPE_NORMAL, eventSuspended, "Job suspended")
	}
	if unannounced || s.resuming() {
		pub.setCondition(s, conditionSuspended, reasonJobResumed, "Job resumed", false)
		pub.event(jobpolicyv1.EventType_EVENT_TYPE_NORMAL, eventResumed, "Job resumed")
		pub.status.StartTime = s.second()
	}
}

// resumedUnannounced reports whether the Job was created suspended, and resumed before a
// status said that it was.
func (s *snapshot) resumedUnannounced() bool {
	return s.req.GetSeenSuspended() && !s.spec.GetSuspend() && s.status.GetStartTime() == nil && !hasCondition(s.status, conditionSuspended)
}

// terminalWait says why a verdict's terminal condition may not be set yet; nil if it
// may be.
func terminalWait(s *snapshot, p plan, l ledger) *jobpolicyv1.Wait {
	remaining := int64(s.pods.GetActive()) + int64(s.pods.GetTerminating()) + int64(s.creating())
	unlisted := int64(s.req.GetUnlistedPods().GetSucceeded()) + int64(s.req.GetUnlistedPods().GetFailed())
	held := len(s.req.GetUnaccountedPods())
	switch {
	case remaining > 0:
		return wait(jobpolicyv1.WaitReason_WAIT_REASON_PODS_REMAINING, "%d active, %d terminating, %d being created",
			p.active, p.terminating, s.creating())
	case unlisted > 0:
		return wait(jobpolicyv1.WaitReason_WAIT_REASON_UNLISTED_PODS, "finished pods that the request does not list yet: %d", unlisted)
	case held > 0:
		return wait(jobpolicyv1.WaitReason_WAIT_REASON_FINALIZERS, "pods that still hold the tracking finalizer: %d", held)
	case !l.empty():
		return wait(jobpolicyv1.WaitReason_WAIT_REASON_UNCOUNTED_PODS, "recorded pods not yet confirmed released: %d",
			len(l.uncounted.Succeeded)+len(l.uncounted.Failed))
	}
	return nil
}

// finish sets the terminal condition.
func (pub *publication) finish(s *snapshot, v verdict) {
	next := pub.status
	pub.setCondition(s, terminalCondition(v), v.reason, v.message, true)
	// The API server requires a start time on a finished Job, except on a suspended one
	// with nothing to complete.
	emptyAndSuspended := s.spec.GetSuspend() && s.spec.Completions != nil && s.spec.GetCompletions() == 0
	if next.StartTime == nil && !emptyAndSuspended {
		next.StartTime = s.second()
	}
	if v.kind == fails {
		pub.event(jobpolicyv1.EventType_EVENT_TYPE_WARNING, v.reason, v.message)
		return
	}
	next.CompletionTime = s.second()
	if start := next.GetStartTime(); start != nil && start.AsTime().After(next.CompletionTime.AsTime()) {
		next.CompletionTime = proto.CloneOf(start)
	}
	if s.spec.Completions != nil && next.GetSucceeded() > s.spec.GetCompletions() {
		pub.event(jobpolicyv1.EventType_EVENT_TYPE_WARNING, eventTooManySucceededPods,
			"Too many succeeded pods running after completion count reached")
	}
	pub.event(jobpolicyv1.EventType_EVENT_TYPE_NORMAL, eventCompleted, "Job completed")
}

func (pub *publication) setCondition(s *snapshot, conditionType, reason, message string, isTrue bool) bool {
	next, changed := withCondition(pub.status.GetConditions(),
		newCondition(conditionType, reason, message, isTrue, s.second()))
	pub.status.Conditions = next
	return changed
}

func (pub *publication) event(eventType jobpolicyv1.EventType, reason, message string) {
	pub.events = append(pub.events, &jobpolicyv1.JobEvent{Type: eventType, Reason: reason, Message: message})
}
