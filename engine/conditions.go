package engine

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// trueCondition finds the condition of a type if its status is true.
func trueCondition(status *jobpolicyv1.JobStatus, conditionType string) (*jobpolicyv1.JobCondition, bool) {
	for _, c := range status.GetConditions() {
		if c.GetType() == conditionType && c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE {
			return c, true
		}
	}
	return nil, false
}

// hasCondition reports whether there is a condition of a type, true or not.
func hasCondition(status *jobpolicyv1.JobStatus, conditionType string) bool {
	return slices.ContainsFunc(status.GetConditions(), func(c *jobpolicyv1.JobCondition) bool { return c.GetType() == conditionType })
}

// finished reports the terminal condition of a Job that has one.
func finished(status *jobpolicyv1.JobStatus) (conditionType string, ok bool) {
	for _, terminalType := range []string{conditionComplete, conditionFailed} {
		if _, is := trueCondition(status, terminalType); is {
			return terminalType, true
		}
	}
	return "", false
}

// ownCondition reports whether the engine writes conditions of this type.
func ownCondition(conditionType string) bool {
	switch conditionType {
	case conditionSuspended, conditionSuccessCriteriaMet, conditionFailureTarget, conditionComplete, conditionFailed, conditionStarted, jobend.ConditionType:
		return true
	}
	return false
}

// withCondition returns conditions with the given one set, and whether that changed
// anything. Other conditions keep their place, because readers depend on the order.
// A condition with status False is set only if there is one of its type.
func withCondition(conditions []*jobpolicyv1.JobCondition, next *jobpolicyv1.JobCondition) ([]*jobpolicyv1.JobCondition, bool) {
	for i, have := range conditions {
		if have.GetType() != next.GetType() {
			continue
		}
		if have.GetStatus() == next.GetStatus() && have.GetReason() == next.GetReason() && have.GetMessage() == next.GetMessage() {
			return conditions, false
		}
		changed := append([]*jobpolicyv1.JobCondition(nil), conditions...)
		changed[i] = next
		return changed, true
	}
	if next.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE {
		return conditions, false
	}
	return append(append([]*jobpolicyv1.JobCondition(nil), conditions...), next), true
}

func newCondition(conditionType, reason, message string, isTrue bool, at *timestamppb.Timestamp) *jobpolicyv1.JobCondition {
	status := jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE
	if isTrue {
		status = jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE
	}
	return &jobpolicyv1.JobCondition{
		Type:               conditionType,
		Status:             status,
		Reason:             reason,
		Message:            message,
		LastProbeTime:      proto.CloneOf(at),
		LastTransitionTime: proto.CloneOf(at),
	}
}
