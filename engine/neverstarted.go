package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// A pod that never starts is ended as options.never_started says, in an order in which a crash loses
// nothing. Since when it does not start stands in its status, so it is never remembered here:
//
//   - Count: the pod is deleted. From then on the ledger counts it as any pod that is deleted.
//   - FailIndex: the status that has the failed index is written first; then the index's pods are deleted.
//   - FailJob: podNeverStarted reaches a verdict, which is written first, as every verdict.

const (
	countPod  = jobpolicyv1.NeverStartedAction_NEVER_STARTED_ACTION_COUNT
	failIndex = jobpolicyv1.NeverStartedAction_NEVER_STARTED_ACTION_FAIL_INDEX
	failJob   = jobpolicyv1.NeverStartedAction_NEVER_STARTED_ACTION_FAIL_JOB
)

// An unstartedPod is an active pod that does not start, with the option that is about its problem.
type unstartedPod struct {
	pod    *jobpolicyv1.ActivePod
	option *jobpolicyv1.NeverStarted
	// due is when its time is over: no later than if it had the problem since now, because clocks differ.
	due time.Time
}

// readUnstarted returns the pods that do not start, those whose time is over first before others.
func readUnstarted(s *snapshot) []unstartedPod {
	never := s.spec.GetOptions().GetNeverStarted()
	if len(never) == 0 || s.spec.GetSuspend() || s.deleting() {
		return nil
	}
	var pods []unstartedPod
	for _, pod := range s.req.GetUnstartedPods() {
		i := slices.IndexFunc(never, func(n *jobpolicyv1.NeverStarted) bool { return n.GetProblem() == pod.GetStart().GetProblem() })
		if i < 0 {
			continue
		}
		due, _ := podfacts.StartDue(never, pod.GetStart())
		if latest := s.now.Add(time.Duration(never[i].GetAfterSeconds()) * time.Second); due.After(latest) {
			due = latest
		}
		pods = append(pods, unstartedPod{pod, never[i], due})
	}
	slices.SortFunc(pods, func(a, b unstartedPod) int {
		return cmp.Or(a.due.Compare(b.due), bytes.Compare(a.pod.GetUid(), b.pod.GetUid()))
	})
	return pods
}

func (u unstartedPod) action() jobpolicyv1.NeverStartedAction {
	return cmp.Or(u.option.GetAction(), countPod)
}

// overdue are the pods that have not started in time, with an action.
func (s *snapshot) overdue(action jobpolicyv1.NeverStartedAction) []unstartedPod {
	var pods []unstartedPod
	for _, u := range s.unstarted {
		if u.action() == action && !u.due.After(s.now) {
			pods = append(pods, u)
		}
	}
	return pods
}

// endingIndexes are the indexes that fail now because their pods have not started in time.
func (s *snapshot) endingIndexes() []int32 {
	var indexes []int32
	for _, u := range s.overdue(failIndex) {
		if s.perIndex() && s.inRange(u.pod.Index) && !s.completed.Has(u.pod.GetIndex()) && !s.failedIndexes.Has(u.pod.GetIndex()) {
			indexes = append(indexes, u.pod.GetIndex())
		}
	}
	return indexes
}

// podNeverStarted: a pod has not started in time, and the Job fails because of that.
//
// The rule comes after the Job's deadlines, so that a Job which has missed one ends as without
// the option.
func podNeverStarted(f facts) answer {
	if len(f.spec.GetOptions().GetNeverStarted()) == 0 {
		return no("pods may take as long as they need to start")
	}
	detail := fmt.Sprintf("pods that do not start: %d", len(f.unstarted))
	pods := f.overdue(failJob)
	if len(pods) == 0 {
		return no(detail + "; none for so long that the Job fails")
	}
	message := fmt.Sprintf("Pod %s did not start within %ds: %s",
		f.failurePolicy.fullName(pods[0].failedPod().failure), pods[0].option.GetAfterSeconds(), pods[0].problem())
	return failure(reasonPodNeverStarted, message, detail)
}

// problem says what keeps the pod, in the words of its status if it has some.
func (u unstartedPod) problem() string {
	return cmp.Or(u.pod.GetStart().GetReason(), "its node cannot prepare it")
}

// failedPod is the pod as one that fails when its time is over.
func (u unstartedPod) failedPod() failedPod {
	return failedPod{
		failure: &jobpolicyv1.PodFailure{PodName: u.pod.GetPodName(), Start: u.pod.GetStart()}, index: u.pod.Index,
		seconds: u.due.Unix(), nanos: int32(u.due.Nanosecond()),
	}
}

// endsFailedIndexes reports whether indexes that the status lists as failed may have active pods to delete:
// pods that did not start.
func (s *snapshot) endsFailedIndexes() bool {
	return slices.ContainsFunc(s.spec.GetOptions().GetNeverStarted(), func(n *jobpolicyv1.NeverStarted) bool { return n.GetAction() == failIndex }) &&
		!s.active.Intersect(s.failedIndexes).Empty()
}

// endsUnstarted reports whether pods are to be deleted because they did not start in time.
func (s *snapshot) endsUnstarted() bool { return len(s.overdue(countPod)) > 0 || s.endsFailedIndexes() }

// endUnstarted plans to delete pods that did not start in time, and all pods of indexes that the status
// lists as failed: such a pod may have started after that was written.
func (p plan) endUnstarted(s *snapshot) plan {
	chosen := map[string]bool{}
	if s.endsFailedIndexes() {
		p = p.needRowsOf(s, s.pods.GetActive())
		for _, pod := range s.req.GetActivePods().GetPods() {
			if pod.Index != nil && s.failedIndexes.Has(pod.GetIndex()) {
				chosen[string(pod.GetUid())] = true
				p.deletions = append(p.deletions, deletion{pod: pod, reason: jobpolicyv1.DeleteReason_DELETE_REASON_NEVER_STARTED})
			}
		}
	}
	for _, u := range s.overdue(countPod) {
		if !chosen[string(u.pod.GetUid())] {
			p.deletions = append(p.deletions, deletion{u.pod, jobpolicyv1.DeleteReason_DELETE_REASON_NEVER_STARTED, true})
		}
	}
	slices.SortFunc(p.deletions, func(a, b deletion) int { return bytes.Compare(a.pod.GetUid(), b.pod.GetUid()) })
	p = p.limited(s)
	// Rows may be truncated, and deletions deferred: a pod that cannot be deleted does not hold up the others.
	p.mayCreate = len(p.deletions) == 0 && len(p.needs) == 0
	return p
}

// unstartedWait is the wait for the time of the next pod that does not start to be over; nil if none waits.
func unstartedWait(s *snapshot) *jobpolicyv1.Wait {
	i := slices.IndexFunc(s.unstarted, func(u unstartedPod) bool { return u.due.After(s.now) })
	if i < 0 {
		return nil
	}
	u := s.unstarted[i]
	return waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_NEVER_STARTED, u.due, "pods that do not start: %d; pod %s (%s) may take %ds, then %s",
		len(s.unstarted), u.pod.GetPodName(), u.problem(), u.option.GetAfterSeconds(), consequence(u.action()))
}

func consequence(action jobpolicyv1.NeverStartedAction) string {
	switch action {
	case failIndex:
		return "its index fails"
	case failJob:
		return "the Job fails"
	}
	return "it counts as failed"
}
