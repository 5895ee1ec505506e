package statusrules

// A Rule is one row of the table of what the API server checks.
type Rule struct {
	// Name is stable: CamelCase, and the same in every version. A rule that was changed
	// has a row for each of its forms. No API server has two forms of a rule.
	Name string
	// Since is the first minor version of Kubernetes that has this form, or OldestMinor
	// if all known versions up to Until have it. Until is the last one, or NewestMinor.
	Since, Until int32
	// Gated rules apply only with the feature gate JobManagedBy on.
	Gated bool

	ask func(Transition, *report)
}

// Rules returns the table: every form of every rule.
func Rules() []Rule {
	const (
		first, last  = OldestMinor, NewestMinor
		always, gate = false, true
	)
	return []Rule{
		// About the status as it is.
		{"NegativeCount", first, last, always, negativeCount},
		{"UncountedUIDEmpty", first, last, always, uncountedUIDEmpty},
		{"UncountedUIDDuplicate", first, last, always, uncountedUIDDuplicate},
		{"SuccessCriteriaMetNonIndexed", 30, 30, always, successCriteriaMetNonIndexed},
		{"SuccessCriteriaMetWithoutSuccessPolicy", 30, 30, always, successCriteriaMetWithoutSuccessPolicy},
		{"SuccessCriteriaMetWithFailed", 30, last, always, successCriteriaMetWithFailed},
		{"SuccessCriteriaMetWithFailureTarget", 30, last, always, successCriteriaMetWithFailureTarget},
		{"SuccessPolicyWithoutSuccessCriteriaMet", 30, last, always, successPolicyWithoutSuccessCriteriaMet},

		// About conditions, when they change.
		{"CompleteWithFailed", 30, last, gate, completeWithFailed},
		{"CompleteWithFailureTarget", 30, last, gate, completeWithFailureTarget},
		{"FailedWithoutFailureTarget", 31, last, gate, failedWithoutFailureTarget},
		{"CompleteWithoutSuccessCriteriaMet", 31, last, gate, completeWithoutSuccessCriteriaMet},
		{"VerdictRemoved", 30, last, gate, verdictRemoved},
		{"SuccessCriteriaMetRemoved", 30, last, always, successCriteriaMetRemoved},
		{"SuccessCriteriaMetAfterComplete", 30, last, always, successCriteriaMetAfterComplete},

		// About times, when they change.
		{"CompletionTimeWithoutComplete", 30, last, gate, completionTimeWithoutComplete},
		{"CompleteWithoutCompletionTime", 30, last, gate, completeWithoutCompletionTime},
		{"CompletionTimeBeforeStartTime", 30, last, gate, completionTimeBeforeStartTime},
		{"CompletionTimeChanged", 30, last, gate, completionTimeChanged},
		{"FinishedWithoutStartTime", 30, 31, gate, finishedWithoutStartTime},
		{"FinishedWithoutStartTime", 32, last, gate, finishedWithoutStartTimeUnlessEmpty},
		{"StartTimeChanged", 30, 31, gate, startTimeChanged},
		{"StartTimeChanged", 32, last, gate, startTimeChangedUnlessResumed},

		// About counts, when they change.
		{"FinishedWithActivePods", 30, last, gate, finishedWithActivePods},
		{"FinishedWithTerminatingPods", 31, last, gate, finishedWithTerminatingPods},
		{"FinishedWithUncountedPods", 30, last, gate, finishedWithUncountedPods},
		{"MoreReadyThanActive", 31, last, gate, moreReadyThanActive},
		{"FailedDecreased", 30, last, gate, failedDecreased},
		{"SucceededDecreased", 30, last, gate, succeededDecreased},

		// About indexes, when they change.
		{"CompletedIndexesMalformed", 30, last, gate, completedIndexesMalformed},
		{"CompletedIndexesNonIndexed", 30, last, gate, completedIndexesNonIndexed},
		{"FailedIndexesMalformed", 30, last, gate, failedIndexesMalformed},
		{"FailedIndexesWithoutBackoffLimitPerIndex", 30, last, gate, failedIndexesWithoutBackoffLimitPerIndex},
		{"IndexCompletedAndFailed", 30, last, gate, indexCompletedAndFailed},
	}
}

// Rules returns the rows of the table that an API server has.
func (s APIServer) Rules() []Rule {
	var rules []Rule
	for _, rule := range Rules() {
		if rule.Since <= s.Minor && s.Minor <= rule.Until && (s.JobManagedBy || !rule.Gated) {
			rules = append(rules, rule)
		}
	}
	return rules
}
