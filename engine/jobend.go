package engine

import (
	"bytes"
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A failedPod is a pod that may have ended the Job: a row, or one of the recent failures. They
// tell the same about a pod, except for the counts of its index.
type failedPod struct {
	failure *jobpolicyv1.PodFailure
	index   *int32
	// seconds and nanos are when it finished.
	seconds int64
	nanos   int32
	match   policyMatch
	// tries is how many pods of its index have failed, this one included; 0 if not known.
	tries int32
	// words are its text if the pods are many that are compared; nil: it is computed each time.
	words []byte
}

func (r podRow) failedPod() failedPod {
	pod := r.pod
	return failedPod{
		pod.GetFailure(), pod.Index, pod.GetFinishedTime().GetSeconds(), pod.GetFinishedTime().GetNanos(),
		r.match, clamp32(int64(pod.GetIndexFailureCount()) + 1), nil,
	}
}

// jobEnd is how the Job failed; nil if it does not fail.
func jobEnd(s *snapshot, t tally, v verdict) *jobpolicyv1.JobEnd {
	if v.kind != fails {
		return nil
	}
	end := &jobpolicyv1.JobEnd{Class: jobpolicyv1.EndClass_END_CLASS_UNKNOWN, Rule: v.rule, Tries: clamp32(t.failed)}
	switch v.rule {
	case jobpolicyv1.Rule_RULE_FAILURE_ALREADY_DECLARED:
		return declaredEnd(s, v)
	case jobpolicyv1.Rule_RULE_DEADLINE_PASSED:
		end.Class = jobpolicyv1.EndClass_END_CLASS_DEADLINE
	case jobpolicyv1.Rule_RULE_START_DEADLINE_PASSED:
		end.Class = jobpolicyv1.EndClass_END_CLASS_NEVER_STARTED
	case jobpolicyv1.Rule_RULE_POD_FAILURE_POLICY_MATCHED:
		r := t.rows[slices.IndexFunc(t.rows, podRow.failsJob)]
		s.describe(end, r.failedPod())
	case jobpolicyv1.Rule_RULE_POD_NEVER_STARTED:
		s.describe(end, s.overdue(failJob)[0].failedPod())
	case jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED:
		s.describeBackoffLimit(end, t)
	case jobpolicyv1.Rule_RULE_TOO_MANY_FAILED_INDEXES, jobpolicyv1.Rule_RULE_ALL_INDEXES_FINISHED_SOME_FAILED:
		end.Tries = 0
		if last, ok := lastFailed(s, t, func(f failedPod) bool { return f.index != nil && t.failedIndexes.Has(*f.index) }); ok {
			s.describe(end, last)
			end.Tries = last.tries
		}
	}
	end.Failures = s.lastFailures(t, v)
	return end
}

// describeBackoffLimit finds the pod whose failure was the last one that backoffLimit allows, or,
// if restarts of containers reached the limit, the pod with the last restart.
func (s *snapshot) describeBackoffLimit(end *jobpolicyv1.JobEnd, t tally) {
	if byRestarts(s, t) {
		end.Tries = clamp32(s.pods.GetRestarts())
		if pod, ok := lastRestarted(s.req.GetActivePods().GetPods()); ok {
			s.describe(end, restartedPod(pod))
		}
		return
	}
	if last, ok := lastFailed(s, t, func(f failedPod) bool { return f.match.counts() }); ok {
		s.describe(end, last)
	}
}

// byRestarts reports whether restarts of containers have reached backoffLimit, and failed pods have not.
func byRestarts(s *snapshot, t tally) bool { return t.failed <= int64(s.spec.GetBackoffLimit()) }

// lastFailed finds the failed pod that finished last.
func lastFailed(s *snapshot, t tally, counts func(failedPod) bool) (failedPod, bool) {
	pods := slices.DeleteFunc(failedPods(s, t), func(f failedPod) bool { return !counts(f) })
	if len(pods) == 0 {
		return failedPod{}, false
	}
	return slices.MaxFunc(pods, byFinish), true
}

// failedPods are the failed pods of rows and of recent failures, so that a pod may be there twice: a pod
// may have no row because it was accounted for, or because the caller cut the list.
func failedPods(s *snapshot, t tally) []failedPod {
	var pods []failedPod
	for _, r := range t.rows {
		if r.failed && r.inRange {
			pods = append(pods, r.failedPod())
		}
	}
	for _, f := range s.req.GetRetry().GetRecentFailures() {
		at := f.GetFinishedTime()
		pods = append(pods, failedPod{f.GetFailure(), f.Index, at.GetSeconds(), at.GetNanos(), s.failurePolicy.match(f.GetFailure()), 0, nil})
	}
	for _, u := range s.overdue(failIndex) {
		pods = append(pods, u.failedPod())
	}
	return pods
}

// byFinish orders failed pods by when they finished, and those of the same time by what a request
// says about them, so that the order of its rows does not matter (invariant I7). A row comes after
// a recent failure of the same pod, because it tells more.
func byFinish(a, b failedPod) int {
	c := cmp.Or(
		cmp.Compare(a.seconds, b.seconds), cmp.Compare(a.nanos, b.nanos),
		cmp.Compare(b.failure.GetPodName(), a.failure.GetPodName()), cmp.Compare(a.tries, b.tries),
	)
	if c != 0 {
		return c
	}
	return bytes.Compare(a.text(), b.text())
}

func (f failedPod) text() []byte {
	if f.words != nil {
		return f.words
	}
	failure, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&jobpolicyv1.PodFailureFact{Failure: f.failure, Index: f.index})
	return failure
}

// lastRestarted finds the pod whose container ended last before it was restarted.
func lastRestarted(pods []*jobpolicyv1.ActivePod) (*jobpolicyv1.ActivePod, bool) {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p *jobpolicyv1.ActivePod) bool { return p.GetLastExit() == nil })
	if len(pods) == 0 {
		return nil, false
	}
	return slices.MaxFunc(pods, func(a, b *jobpolicyv1.ActivePod) int {
		at, bt := a.GetLastExitTime(), b.GetLastExitTime()
		return cmp.Or(
			cmp.Compare(at.GetSeconds(), bt.GetSeconds()), cmp.Compare(at.GetNanos(), bt.GetNanos()),
			cmp.Compare(b.GetPodName(), a.GetPodName()), slices.Compare(a.GetUid(), b.GetUid()),
		)
	}), true
}

// needsRestarts reports whether the condition that says how the Job failed has to name a pod
// that only the rows of active pods show.
func needsRestarts(s *snapshot, t tally, v verdict) bool {
	return v.rule == jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED && byRestarts(s, t) &&
		s.spec.GetOptions().GetEndCondition() && s.pods.GetActive() > 0
}

// describe adds what is known of the pod that ended the Job.
func (s *snapshot) describe(end *jobpolicyv1.JobEnd, pod failedPod) {
	end.Class = classify(pod.failure, pod.match)
	end.PodName = pod.failure.GetPodName()
	if s.indexed {
		end.Index = pod.index
	}
	if pod.match.matched() {
		end.PolicyRuleIndex = proto.Int32(int32(pod.match.rule))
		end.PolicyRuleName = s.failureRuleName(pod.match.rule)
	}
	exit := pod.toldExit()
	end.ContainerName, end.ExitCode, end.Signal = exit.GetContainerName(), exit.GetExitCode(), exit.GetSignal()
	end.Reason = cmp.Or(pod.failure.GetReason(), pod.failure.GetStart().GetReason(), exit.GetReason())
	end.Problem = pod.failure.GetStart().GetProblem()
	if option, step := s.spec.GetOptions().GetNextTryResources(), pod.failure.GetResourceStep(); option != nil && step > 0 {
		end.RaisedResource, end.RaisedBy = option.GetResource(), multiplier(option, step)
	}
}

// toldExit is the container that made the pod fail; nil if none has.
func (f failedPod) toldExit() *jobpolicyv1.ContainerExit {
	if f.failure.GetStart() != nil {
		return nil // The container has not run; its node only says that it ended with the pod.
	}
	return decisiveExit(f.failure, f.match)
}

// failureRuleName is the name of a rule of the pod failure policy; empty if it has none.
func (s *snapshot) failureRuleName(rule int) string {
	return nameOfRule(s.spec.GetOptions().GetFailureRuleNames(), rule)
}

func nameOfRule(names []string, rule int) string {
	if rule < len(names) {
		return names[rule]
	}
	return ""
}

// decisiveExit is the container that made a pod fail: see JobEnd.container_name.
func decisiveExit(f *jobpolicyv1.PodFailure, m policyMatch) *jobpolicyv1.ContainerExit {
	exits := f.GetContainerExits()
	if i := slices.IndexFunc(exits, outOfMemory); i >= 0 {
		return exits[i]
	}
	if m.exit != nil || len(exits) == 0 {
		return m.exit
	}
	return exits[0]
}

// declaredEnd is the end that an earlier decision, or another controller, has declared. The pods may
// be gone, so only the status counts.
func declaredEnd(s *snapshot, v verdict) *jobpolicyv1.JobEnd {
	if c, ok := trueCondition(s.status, jobend.ConditionType); ok {
		if end, ok := jobend.Read(c.GetReason(), c.GetMessage()); ok {
			return end
		}
	}
	end := &jobpolicyv1.JobEnd{Class: jobpolicyv1.EndClass_END_CLASS_UNKNOWN, Rule: rulesOfReasons[v.reason]}
	switch end.GetRule() {
	case jobpolicyv1.Rule_RULE_DEADLINE_PASSED:
		end.Class = jobpolicyv1.EndClass_END_CLASS_DEADLINE
	case jobpolicyv1.Rule_RULE_START_DEADLINE_PASSED, jobpolicyv1.Rule_RULE_POD_NEVER_STARTED:
		end.Class = jobpolicyv1.EndClass_END_CLASS_NEVER_STARTED
	}
	return end
}

// rulesOfReasons are the rules that fail a Job with a reason.
var rulesOfReasons = map[string]jobpolicyv1.Rule{
	reasonPodFailurePolicy:         jobpolicyv1.Rule_RULE_POD_FAILURE_POLICY_MATCHED,
	reasonBackoffLimitExceeded:     jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED,
	reasonDeadlineExceeded:         jobpolicyv1.Rule_RULE_DEADLINE_PASSED,
	reasonStartDeadlineExceeded:    jobpolicyv1.Rule_RULE_START_DEADLINE_PASSED,
	reasonPodNeverStarted:          jobpolicyv1.Rule_RULE_POD_NEVER_STARTED,
	reasonMaxFailedIndexesExceeded: jobpolicyv1.Rule_RULE_TOO_MANY_FAILED_INDEXES,
	reasonFailedIndexes:            jobpolicyv1.Rule_RULE_ALL_INDEXES_FINISHED_SOME_FAILED,
}
