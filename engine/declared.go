package engine

// successAlreadyDeclared: the condition SuccessCriteriaMet was written by an earlier
// decision. It is final: later facts do not change a verdict.
func successAlreadyDeclared(f facts) answer {
	condition, ok := trueCondition(f.status, conditionSuccessCriteriaMet)
	if !ok {
		return no("condition SuccessCriteriaMet is not set")
	}
	return success(condition.GetReason(), condition.GetMessage(), condition.GetMessage())
}

// failureAlreadyDeclared: the condition FailureTarget was written by an earlier
// decision.
func failureAlreadyDeclared(f facts) answer {
	condition, ok := trueCondition(f.status, conditionFailureTarget)
	if !ok {
		return no("condition FailureTarget is not set")
	}
	return failure(condition.GetReason(), condition.GetMessage(), condition.GetMessage())
}

// declared reports whether an earlier decision declared how the Job ends. Then its
// deadline is not asked.
func (l lifetime) declared() bool {
	_, succeeds := trueCondition(l.status, conditionSuccessCriteriaMet)
	_, fails := trueCondition(l.status, conditionFailureTarget)
	return succeeds || fails
}

// interimWritten reports whether the verdict's interim condition is in the
// status as last written.
func interimWritten(s *snapshot, v verdict) bool {
	_, ok := trueCondition(s.status, interimCondition(v))
	return ok
}

// interimCondition is the condition that announces a verdict.
func interimCondition(v verdict) string {
	if v.kind == succeeds {
		return conditionSuccessCriteriaMet
	}
	return conditionFailureTarget
}

// terminalCondition is the condition that completes a verdict.
func terminalCondition(v verdict) string {
	if v.kind == succeeds {
		return conditionComplete
	}
	return conditionFailed
}
