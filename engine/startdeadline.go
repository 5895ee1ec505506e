package engine

import (
	"fmt"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// startDeadlinePassed: no pod has run within options.start_deadline_seconds since the Job
// started or last resumed. That a pod has run is known from the pods, or from the condition
// Started, because pods may be gone. The condition is FALSE from the start on. A Job without
// it got its deadline after it had started; nobody knows then which pods it had before.
//
// The rule comes after the Job's own deadline, so that a Job which has missed both ends as
// with the built-in controller.
func startDeadlinePassed(f facts) answer {
	_, started := f.activeSince()
	switch {
	case f.spec.GetOptions() == nil || f.spec.GetOptions().StartDeadlineSeconds == nil:
		return no("the Job has no deadline to start")
	case f.held():
		return no("the Job does not start")
	case f.spec.GetSuspend():
		return no("a suspended Job's deadline to start does not run")
	case f.deleting():
		return no("the deadline to start of a Job that is being deleted does not run")
	case !started:
		return no("the Job starts with this decision")
	case f.hasRun():
		return no("a pod has run")
	case !hasCondition(f.status, conditionStarted):
		return no("the deadline to start was set after the Job had started; it does not run")
	}
	elapsed, over := f.over(f.spec.GetOptions().GetStartDeadlineSeconds())
	detail := fmt.Sprintf("no pod has run for %ds of %ds", elapsed, f.spec.GetOptions().GetStartDeadlineSeconds())
	if over {
		return failure(reasonStartDeadlineExceeded, "No pod of the Job ran before its deadline to start", detail)
	}
	return no(detail)
}

// hasRun reports whether a pod has run since the Job started or last resumed.
func (s *snapshot) hasRun() bool {
	_, is := trueCondition(s.status, conditionStarted)
	return s.pods.GetHasRun() || is && !s.resuming()
}

// startDeadlineRuns reports whether a pod must run before a deadline to start.
func (s *snapshot) startDeadlineRuns() bool {
	_, started := s.activeSince()
	return s.hasStartDeadline() && !s.deleting() && !s.held() && !s.hasRun() && (!started || hasCondition(s.status, conditionStarted))
}

// hasStartDeadline reports whether the Job has a deadline to start and is not suspended.
func (l lifetime) hasStartDeadline() bool {
	return l.spec.GetOptions() != nil && l.spec.GetOptions().StartDeadlineSeconds != nil && !l.spec.GetSuspend()
}

// startDeadline is when the deadline to start passes; ok is false for one that is longer than
// maxDeadline. The Job must have one.
func (l lifetime) startDeadline() (at time.Time, ok bool) {
	return l.after(l.spec.GetOptions().GetStartDeadlineSeconds())
}

// started keeps the condition Started of a Job with a deadline to start: FALSE from the start
// and each resumption on, TRUE once a pod has run. At the start a pod may have run already,
// if an earlier status could not be written. A Job that has the condition keeps it true to the
// facts also while it has no such deadline: its policy may have one again when the pods are gone.
func (pub *publication) started(s *snapshot) {
	_, before := s.activeSince()
	has, ran := hasCondition(pub.status, conditionStarted), s.pods.GetHasRun()
	if !has && !s.hasStartDeadline() || s.spec.GetSuspend() || s.deleting() || s.held() || before && !(has && ran) {
		return
	}
	next := newCondition(conditionStarted, reasonNoPodRan, "No pod of the Job has run since it started", false, s.second())
	if ran {
		next = newCondition(conditionStarted, reasonPodRan, "A pod of the Job has run", true, s.second())
	}
	if !has {
		pub.status.Conditions = append(pub.status.Conditions, next)
		return
	}
	pub.status.Conditions, _ = withCondition(pub.status.GetConditions(), next)
}

// startWait is the wait for the deadline to start to pass; nil if none runs.
func startWait(s *snapshot) *jobpolicyv1.Wait {
	if !s.startDeadlineRuns() {
		return nil
	}
	at, ok := s.startDeadline()
	if !ok {
		return nil
	}
	return waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_START_DEADLINE, at,
		"a pod must run within %ds of the Job's start", s.spec.GetOptions().GetStartDeadlineSeconds())
}
