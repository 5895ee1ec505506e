package engine_test

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A statusChange is a status update as the API server sees it. Its rules are
// stated here a second time, independently of the engine (invariant I5): those
// of the batch/v1 status strategy of Kubernetes v1.36. Many are asked only
// when the field they are about changes, because a user may have changed the
// spec under a status that was right before.
type statusChange struct {
	spec     *jobpolicyv1.JobSpec
	old, new *jobpolicyv1.JobStatus
}

// violations lists the rules that the update breaks.
func (c statusChange) violations() []string {
	var broken []string
	for _, rule := range []struct {
		name string
		ok   bool
	}{
		{"counts are not negative", c.countsNotNegative()},
		{"each UID stands once in uncounted", c.uncountedOnce()},
		{"a condition type stands once", c.conditionsOnce()},
		{"Complete and Failed exclude each other", !c.flipped(complete, failed) || !is(c.new, complete) || !is(c.new, failed)},
		{"Complete and FailureTarget exclude each other", !c.flipped(complete, failureTarget) || !is(c.new, complete) || !is(c.new, failureTarget)},
		{"SuccessCriteriaMet excludes Failed and FailureTarget", !is(c.new, criteriaMet) || (!is(c.new, failed) && !is(c.new, failureTarget))},
		{"a completion time needs Complete", !c.completionMatters() || c.new.GetCompletionTime() == nil || is(c.new, complete)},
		{"Complete needs a completion time", !c.completionMatters() || c.new.GetCompletionTime() != nil || !is(c.new, complete)},
		{"completion is not before start", c.completionAfterStart()},
		{"Failed needs FailureTarget", !(c.flipped(failed) || c.failedIndexesChanged()) || !is(c.new, failed) || is(c.new, failureTarget)},
		{"Complete needs SuccessCriteriaMet", !c.flipped(complete, criteriaMet) || !is(c.new, complete) || is(c.new, criteriaMet)},
		{"a finished Job has no active pods", !c.finishedOr(c.old.GetActive() != c.new.GetActive()) || c.new.GetActive() == 0},
		{"a finished Job has no terminating pods", !c.finishedOr(!sameCount(c.old.Terminating, c.new.Terminating)) || c.new.GetTerminating() == 0},
		{"a finished Job has a start time", c.finishedHasStart()},
		{"a finished Job has nothing uncounted", !c.finishedOr(!proto.Equal(c.old.GetUncounted(), c.new.GetUncounted())) || uncountedPods(c.new) == 0},
		{"ready is not above active", (sameCount(c.old.Ready, c.new.Ready) && c.old.GetActive() == c.new.GetActive()) || c.new.GetReady() <= c.new.GetActive()},
		{"completed indexes are those of an Indexed Job", c.completedIndexesInRange()},
		{"failed indexes are those of a Job with limits per index", c.failedIndexesInRange()},
		{"no index is both completed and failed", c.indexesDisjoint()},
		{"Failed, Complete, FailureTarget and SuccessCriteriaMet stay", c.verdictsStay()},
		{"SuccessCriteriaMet is not added to a Complete Job", !is(c.old, complete) || is(c.old, criteriaMet) || !is(c.new, criteriaMet)},
		{"failed does not decrease", c.new.GetFailed() >= c.old.GetFailed()},
		{"succeeded does not decrease", c.elastic() || c.new.GetSucceeded() >= c.old.GetSucceeded()},
		{"the completion time stays", c.new.GetCompletionTime() == nil || c.old.GetCompletionTime() == nil || proto.Equal(c.new.GetCompletionTime(), c.old.GetCompletionTime())},
		{"the start time of a running Job stays", c.startTimeStays()},
	} {
		if !rule.ok {
			broken = append(broken, rule.name)
		}
	}
	return broken
}

const (
	complete      = "Complete"
	failed        = "Failed"
	failureTarget = "FailureTarget"
	criteriaMet   = "SuccessCriteriaMet"
	suspended     = "Suspended"
)

func hasCondition(s *jobpolicyv1.JobStatus, conditionType string, status jobpolicyv1.ConditionStatus) bool {
	for _, c := range s.GetConditions() {
		if c.GetType() == conditionType && c.GetStatus() == status {
			return true
		}
	}
	return false
}

// is reports whether the condition is true.
func is(s *jobpolicyv1.JobStatus, conditionType string) bool {
	return hasCondition(s, conditionType, jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE)
}

func isFinished(s *jobpolicyv1.JobStatus) bool { return is(s, complete) || is(s, failed) }

func uncountedPods(s *jobpolicyv1.JobStatus) int {
	return len(s.GetUncounted().GetSucceeded()) + len(s.GetUncounted().GetFailed())
}

func sameCount(a, b *int32) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// flipped reports whether one of the conditions changes its truth.
func (c statusChange) flipped(conditionTypes ...string) bool {
	for _, t := range conditionTypes {
		if is(c.old, t) != is(c.new, t) {
			return true
		}
	}
	return false
}

// finishedOr reports whether a rule about finished Jobs is to be asked: the Job
// is finished, and that or the field in question has changed.
func (c statusChange) finishedOr(changed bool) bool {
	return isFinished(c.new) && (changed || !isFinished(c.old))
}

func (c statusChange) completionMatters() bool {
	return c.flipped(complete) || !proto.Equal(c.old.GetCompletionTime(), c.new.GetCompletionTime())
}

func (c statusChange) startChanged() bool {
	return !proto.Equal(c.old.GetStartTime(), c.new.GetStartTime())
}

func (c statusChange) completionAfterStart() bool {
	start, completion := c.new.GetStartTime(), c.new.GetCompletionTime()
	if start == nil || completion == nil || (!c.startChanged() && proto.Equal(c.old.GetCompletionTime(), completion)) {
		return true
	}
	return !completion.AsTime().Before(start.AsTime())
}

func (c statusChange) finishedHasStart() bool {
	suspendedAndEmpty := c.spec.GetSuspend() && c.spec.Completions != nil && c.spec.GetCompletions() == 0
	return !c.finishedOr(c.startChanged()) || suspendedAndEmpty || c.new.GetStartTime() != nil
}

func (c statusChange) countsNotNegative() bool {
	return min(c.new.GetActive(), c.new.GetReady(), c.new.GetTerminating(), c.new.GetSucceeded(), c.new.GetFailed()) >= 0
}

func (c statusChange) uncountedOnce() bool {
	seen := map[string]bool{}
	for _, list := range [][][]byte{c.new.GetUncounted().GetSucceeded(), c.new.GetUncounted().GetFailed()} {
		for _, uid := range list {
			if len(uid) == 0 || seen[string(uid)] {
				return false
			}
			seen[string(uid)] = true
		}
	}
	return true
}

func (c statusChange) conditionsOnce() bool {
	seen := map[string]bool{}
	for _, condition := range c.new.GetConditions() {
		if seen[condition.GetType()] {
			return false
		}
		seen[condition.GetType()] = true
	}
	return true
}

func (c statusChange) indexed() bool {
	return c.spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
}

// elastic reports whether completions may have been scaled down.
func (c statusChange) elastic() bool {
	return c.indexed() && c.spec.Completions != nil && c.spec.GetCompletions() == c.spec.GetParallelism()
}

func (c statusChange) completedIndexesChanged() bool {
	return indexText(c.old.GetCompletedIndexes()) != indexText(c.new.GetCompletedIndexes())
}

func (c statusChange) failedIndexesChanged() bool {
	return (c.old.FailedIndexes == nil) != (c.new.FailedIndexes == nil) ||
		indexText(c.old.GetFailedIndexes()) != indexText(c.new.GetFailedIndexes())
}

func (c statusChange) inRange(m *jobpolicyv1.IndexSet) bool {
	return c.spec.Completions == nil || indexes(m).Below(c.spec.GetCompletions()).Len() == indexes(m).Len()
}

func (c statusChange) completedIndexesInRange() bool {
	set := c.new.GetCompletedIndexes()
	return !c.completedIndexesChanged() || (c.inRange(set) && (c.indexed() || len(set.GetRanges()) == 0))
}

func (c statusChange) failedIndexesInRange() bool {
	set := c.new.FailedIndexes
	return !c.failedIndexesChanged() || (c.inRange(set) && (c.spec.BackoffLimitPerIndex != nil || set == nil))
}

func (c statusChange) indexesDisjoint() bool {
	if !c.completedIndexesChanged() && !c.failedIndexesChanged() {
		return true
	}
	return indexes(c.new.GetCompletedIndexes()).Intersect(indexes(c.new.GetFailedIndexes())).Empty()
}

func (c statusChange) verdictsStay() bool {
	for _, t := range []string{failed, complete, failureTarget, criteriaMet} {
		if is(c.old, t) && !is(c.new, t) {
			return false
		}
	}
	return true
}

func (c statusChange) startTimeStays() bool {
	resumes := is(c.old, suspended) && hasCondition(c.new, suspended, jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE)
	return !c.startChanged() || resumes || c.old.GetStartTime() == nil || c.spec.GetSuspend()
}

// conditionsRemoved names a condition that the new status has lost. The API
// server would let some of them go; the engine must not.
func conditionsRemoved(old, next *jobpolicyv1.JobStatus) error {
	for _, c := range old.GetConditions() {
		if !hasCondition(next, c.GetType(), jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE) &&
			!hasCondition(next, c.GetType(), jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE) &&
			!hasCondition(next, c.GetType(), jobpolicyv1.ConditionStatus_CONDITION_STATUS_UNKNOWN) {
			return fmt.Errorf("condition %s was removed", c.GetType())
		}
	}
	return nil
}
