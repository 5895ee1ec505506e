package statusrules

import (
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The condition types that rules are about.
const (
	complete      = "Complete"
	failed        = "Failed"
	failureTarget = "FailureTarget"
	criteriaMet   = "SuccessCriteriaMet"
	suspended     = "Suspended"
)

const conditionsField = "conditions"

func has(s *jobpolicyv1.JobStatus, conditionType string, status jobpolicyv1.ConditionStatus) bool {
	return slices.ContainsFunc(s.GetConditions(), func(c *jobpolicyv1.JobCondition) bool {
		return c.GetType() == conditionType && c.GetStatus() == status
	})
}

// is reports whether a condition is true. If there are several of one type, one that
// is true is enough.
func is(s *jobpolicyv1.JobStatus, conditionType string) bool {
	return has(s, conditionType, jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE)
}

func isFinished(s *jobpolicyv1.JobStatus) bool { return is(s, complete) || is(s, failed) }

// flips reports whether a condition becomes true or stops being true.
func (t Transition) flips(conditionType string) bool {
	return is(t.Before, conditionType) != is(t.After, conditionType)
}

// finishes reports whether the Job becomes finished or stops being finished.
func (t Transition) finishes() bool { return isFinished(t.Before) != isFinished(t.After) }

// resumes reports whether the update makes the condition Suspended no longer true.
func (t Transition) resumes() bool {
	return is(t.Before, suspended) && has(t.After, suspended, jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE)
}

// together records a violation if two conditions that exclude each other are both
// true.
func (t Transition) together(r *report, one, other string) {
	if is(t.After, one) && is(t.After, other) {
		r.add(conditionsField, "%s and %s must not both be true", one, other)
	}
}

func completeWithFailed(t Transition, r *report) {
	if t.flips(complete) || t.flips(failed) {
		t.together(r, complete, failed)
	}
}

func completeWithFailureTarget(t Transition, r *report) {
	if t.flips(complete) || t.flips(failureTarget) {
		t.together(r, complete, failureTarget)
	}
}

func successCriteriaMetWithFailed(t Transition, r *report) { t.together(r, criteriaMet, failed) }

func successCriteriaMetWithFailureTarget(t Transition, r *report) {
	t.together(r, criteriaMet, failureTarget)
}

func failedWithoutFailureTarget(t Transition, r *report) {
	if (t.flips(failed) || t.failedIndexesChange()) && is(t.After, failed) && !is(t.After, failureTarget) {
		r.add(conditionsField, "Failed must not be true without FailureTarget")
	}
}

func completeWithoutSuccessCriteriaMet(t Transition, r *report) {
	if (t.flips(complete) || t.flips(criteriaMet)) && is(t.After, complete) && !is(t.After, criteriaMet) {
		r.add(conditionsField, "Complete must not be true without SuccessCriteriaMet")
	}
}

// successPolicyWithoutSuccessCriteriaMet is the older one of two rules. It applies
// only to Jobs with a success policy, but with any gate, and whether the conditions
// change or not.
func successPolicyWithoutSuccessCriteriaMet(t Transition, r *report) {
	if t.Spec.GetSuccessPolicy() != nil && is(t.After, complete) && !is(t.After, criteriaMet) {
		r.add(conditionsField, "Complete must not be true without SuccessCriteriaMet for a Job with a success policy")
	}
}

func successCriteriaMetNonIndexed(t Transition, r *report) {
	if !t.indexed() && is(t.After, criteriaMet) {
		r.add(conditionsField, "SuccessCriteriaMet must not be true for a Job that is not Indexed")
	}
}

func successCriteriaMetWithoutSuccessPolicy(t Transition, r *report) {
	if t.Spec.GetSuccessPolicy() == nil && is(t.After, criteriaMet) {
		r.add(conditionsField, "SuccessCriteriaMet must not be true for a Job without a success policy")
	}
}

func verdictRemoved(t Transition, r *report) {
	for _, conditionType := range []string{failed, complete, failureTarget} {
		t.removed(r, conditionType)
	}
}

func successCriteriaMetRemoved(t Transition, r *report) { t.removed(r, criteriaMet) }

func (t Transition) removed(r *report, conditionType string) {
	if is(t.Before, conditionType) && !is(t.After, conditionType) {
		r.add(conditionsField, "%s is true and must stay so", conditionType)
	}
}

func successCriteriaMetAfterComplete(t Transition, r *report) {
	if is(t.Before, complete) && !is(t.Before, criteriaMet) && is(t.After, criteriaMet) {
		r.add(conditionsField, "SuccessCriteriaMet must not become true for a Job that is Complete already")
	}
}
