package statusrules_test

const (
	isComplete      = "Complete"
	isFailed        = "Failed"
	isFailureTarget = "FailureTarget"
	isCriteriaMet   = "SuccessCriteriaMet"
	isSuspended     = "Suspended"
)

// Statuses that more than one case begins with.
var (
	failing   = []fact{start(5), yes(isFailureTarget)}
	isDone    = []fact{start(5), completion(9), yes(isCriteriaMet), yes(isComplete)}
	hasFailed = []fact{start(5), yes(isFailureTarget), yes(isFailed)}
)

// plus is a status with more in it.
func plus(facts []fact, more ...fact) []fact { return append(facts[:len(facts):len(facts)], more...) }

func countCases() map[string]testCase {
	return map[string]testCase{
		"negative counts, of the status as it was, too": {
			before: []fact{active(-1)}, after: []fact{active(-1), ready(-2), terminating(-1)},
			want: []string{"NegativeCount status.active", "NegativeCount status.ready", "NegativeCount status.terminating"},
		},
		"negative counters": {
			after: []fact{succeeded(-1), failed(-1)},
			want: []string{
				"NegativeCount status.succeeded", "NegativeCount status.failed",
				"FailedDecreased status.failed", "SucceededDecreased status.succeeded",
			},
		},
		"a UID twice": {
			after: []fact{uncounted([]string{"a", "b"}, []string{"c", "a"})},
			want:  []string{"UncountedUIDDuplicate status.uncountedTerminatedPods.failed[1]"},
		},
		"two UIDs that are empty": {
			after: []fact{uncounted([]string{""}, []string{"a", ""})},
			want: []string{
				"UncountedUIDEmpty status.uncountedTerminatedPods.succeeded[0]",
				"UncountedUIDEmpty status.uncountedTerminatedPods.failed[1]",
			},
		},
		"failed decreases": {
			before: []fact{failed(2)}, after: []fact{failed(1)}, want: []string{"FailedDecreased status.failed"},
		},
		"succeeded decreases": {
			before: []fact{succeeded(2)}, after: []fact{succeeded(1)}, want: []string{"SucceededDecreased status.succeeded"},
		},
		"succeeded decreases, completions equal parallelism, not Indexed": {
			spec:   []tweak{completions(2)},
			before: []fact{succeeded(2)}, after: []fact{succeeded(1)}, want: []string{"SucceededDecreased status.succeeded"},
		},
		"succeeded decreases, Indexed, completions are not parallelism": {
			spec:   []tweak{indexedOf(2)},
			before: []fact{succeeded(2)}, after: []fact{succeeded(1)}, want: []string{"SucceededDecreased status.succeeded"},
		},
		"succeeded decreases by scaling down": {
			spec:   []tweak{indexedOf(1)},
			before: []fact{succeeded(2)}, after: []fact{succeeded(1)},
		},
		"more ready than active":              {after: []fact{active(1), ready(2)}, want: []string{"MoreReadyThanActive status.ready"}},
		"more ready than active by an end":    {before: []fact{active(2), ready(2)}, after: []fact{active(1), ready(2)}, want: []string{"MoreReadyThanActive status.ready"}},
		"more ready than active, as before":   {before: []fact{active(1), ready(2)}, after: []fact{active(1), ready(2)}},
		"ready was never counted":             {after: []fact{active(1)}},
		"Failed with active pods":             {before: failing, after: plus(hasFailed, active(1)), want: []string{"FinishedWithActivePods status.active"}},
		"Failed with terminating pods":        {before: failing, after: plus(hasFailed, terminating(1)), want: []string{"FinishedWithTerminatingPods status.terminating"}},
		"Failed with uncounted pods":          {before: failing, after: plus(hasFailed, uncounted(nil, []string{"a"})), want: []string{"FinishedWithUncountedPods status.uncountedTerminatedPods"}},
		"Complete with active pods anew":      {before: isDone, after: plus(isDone, active(1)), want: []string{"FinishedWithActivePods status.active"}},
		"Complete with pods as before":        {before: plus(isDone, active(1), terminating(2)), after: plus(isDone, active(1), terminating(2))},
		"Complete with uncounted pods anew":   {before: isDone, after: plus(isDone, uncounted([]string{"a"}, nil)), want: []string{"FinishedWithUncountedPods status.uncountedTerminatedPods"}},
		"Complete with uncounted as before":   {before: plus(isDone, uncounted([]string{"a"}, nil)), after: plus(isDone, uncounted([]string{"a"}, nil))},
		"Complete with terminating pods anew": {before: isDone, after: plus(isDone, terminating(1)), want: []string{"FinishedWithTerminatingPods status.terminating"}},
	}
}

func conditionCases() map[string]testCase {
	const field = " status.conditions"
	return map[string]testCase{
		"both interim conditions": {
			after: []fact{yes(isFailureTarget), yes(isCriteriaMet)},
			want:  []string{"SuccessCriteriaMetWithFailureTarget" + field},
		},
		"SuccessCriteriaMet and Failed": {
			after: []fact{start(5), yes(isFailed), yes(isCriteriaMet)},
			want:  []string{"SuccessCriteriaMetWithFailed" + field, "FailedWithoutFailureTarget" + field},
		},
		"both verdicts": {
			before: isDone, after: plus(isDone, yes(isFailed), yes(isFailureTarget)),
			want: []string{
				"SuccessCriteriaMetWithFailed" + field, "SuccessCriteriaMetWithFailureTarget" + field,
				"CompleteWithFailed" + field, "CompleteWithFailureTarget" + field,
			},
		},
		"Failed out of the blue": {
			after: []fact{start(5), yes(isFailed)}, want: []string{"FailedWithoutFailureTarget" + field},
		},
		"Failed without FailureTarget as before": {
			before: []fact{start(5), yes(isFailed)}, after: []fact{start(5), yes(isFailed), failed(1)},
		},
		"Failed without FailureTarget as before, other failed indexes": {
			spec:   []tweak{indexedOf(2), perIndex},
			before: []fact{start(5), yes(isFailed)}, after: []fact{start(5), yes(isFailed), failedIndexes(1, 1)},
			want: []string{"FailedWithoutFailureTarget" + field},
		},
		"Complete out of the blue": {
			after: []fact{start(5), completion(9), yes(isComplete)}, want: []string{"CompleteWithoutSuccessCriteriaMet" + field},
		},
		"Complete out of the blue, with a success policy": {
			spec: []tweak{indexedOf(1), successPolicy}, after: []fact{start(5), completion(9), yes(isComplete)},
			want: []string{"SuccessPolicyWithoutSuccessCriteriaMet" + field, "CompleteWithoutSuccessCriteriaMet" + field},
		},
		"Complete as before, with a success policy": {
			spec:   []tweak{indexedOf(1), successPolicy},
			before: []fact{start(5), completion(9), yes(isComplete)}, after: []fact{start(5), completion(9), yes(isComplete), succeeded(1)},
			want: []string{"SuccessPolicyWithoutSuccessCriteriaMet" + field},
		},
		"SuccessCriteriaMet comes after Complete": {
			before: []fact{start(5), completion(9), yes(isComplete)}, after: isDone,
			want: []string{"SuccessCriteriaMetAfterComplete" + field},
		},
		"SuccessCriteriaMet goes": {
			before: []fact{yes(isCriteriaMet)}, after: []fact{no(isCriteriaMet)}, want: []string{"SuccessCriteriaMetRemoved" + field},
		},
		"FailureTarget and Failed go": {
			before: hasFailed, after: []fact{start(5)}, want: []string{"VerdictRemoved" + field, "VerdictRemoved" + field},
		},
		"another condition goes":         {before: []fact{yes("Other"), yes(isSuspended)}},
		"a condition twice, true once":   {before: []fact{yes(isFailureTarget)}, after: []fact{no(isFailureTarget), yes(isFailureTarget)}},
		"SuccessCriteriaMet by itself":   {after: []fact{yes(isCriteriaMet)}},
		"Failed with its FailureTarget":  {before: failing, after: hasFailed},
		"Complete with its criteria met": {before: []fact{start(5), yes(isCriteriaMet)}, after: isDone},
	}
}

func timeCases() map[string]testCase {
	const completionTime, startTime = " status.completionTime", " status.startTime"
	return map[string]testCase{
		"completion time without Complete": {
			after: []fact{completion(9)}, want: []string{"CompletionTimeWithoutComplete" + completionTime},
		},
		"completion time without Complete as before": {before: []fact{completion(9)}, after: []fact{completion(9), active(1)}},
		"Complete without completion time": {
			after: []fact{start(5), yes(isCriteriaMet), yes(isComplete)}, want: []string{"CompleteWithoutCompletionTime" + completionTime},
		},
		"completion before start": {
			after: []fact{start(10), completion(9), yes(isCriteriaMet), yes(isComplete)},
			want:  []string{"CompletionTimeBeforeStartTime" + completionTime},
		},
		"completion moves": {
			before: isDone, after: []fact{start(5), completion(10), yes(isCriteriaMet), yes(isComplete)},
			want: []string{"CompletionTimeChanged" + completionTime},
		},
		"completion goes": {
			before: isDone, after: []fact{start(5), yes(isCriteriaMet), yes(isComplete)},
			want: []string{"CompleteWithoutCompletionTime" + completionTime},
		},
		"Failed without start": {
			before: []fact{yes(isFailureTarget)}, after: []fact{yes(isFailureTarget), yes(isFailed)},
			want: []string{"FinishedWithoutStartTime" + startTime},
		},
		"Failed without start, suspended": {
			spec: []tweak{suspend}, before: []fact{yes(isFailureTarget)}, after: []fact{yes(isFailureTarget), yes(isFailed)},
			want: []string{"FinishedWithoutStartTime" + startTime},
		},
		"suspended and nothing to do":    {spec: []tweak{suspend, completions(0)}, after: []fact{completion(9), yes(isCriteriaMet), yes(isComplete)}},
		"start moves":                    {before: []fact{start(5)}, after: []fact{start(6)}, want: []string{"StartTimeChanged" + startTime}},
		"start goes":                     {before: []fact{start(5)}, want: []string{"StartTimeChanged" + startTime}},
		"start moves while suspended":    {spec: []tweak{suspend}, before: []fact{start(5)}, after: []fact{start(6)}},
		"start moves by a resume":        {before: []fact{start(5), yes(isSuspended)}, after: []fact{start(6), no(isSuspended)}},
		"start moves as Suspended goes":  {before: []fact{start(5), yes(isSuspended)}, after: []fact{start(6)}, want: []string{"StartTimeChanged" + startTime}},
		"start moves less than a second": {before: []fact{start(5)}, after: []fact{start(5), nanoseconds(999_999_999)}},
	}
}

func indexCases() map[string]testCase {
	const completed, failed = " status.completedIndexes", " status.failedIndexes"
	both := []tweak{indexedOf(5), perIndex}
	return map[string]testCase{
		"completed indexes without indexes": {
			after: []fact{completedIndexes(0, 0)}, want: []string{"CompletedIndexesNonIndexed" + completed},
		},
		"completed indexes without indexes and beyond completions": {
			spec:  []tweak{completions(1)},
			after: []fact{completedIndexes(1, 1)}, want: []string{"CompletedIndexesMalformed" + completed, "CompletedIndexesNonIndexed" + completed},
		},
		"completed indexes beyond completions": {
			spec: []tweak{indexedOf(3)}, after: []fact{completedIndexes(0, 0, 2, 3)}, want: []string{"CompletedIndexesMalformed" + completed},
		},
		"completed indexes beyond completions as before": {
			spec: []tweak{indexedOf(3)}, before: []fact{completedIndexes(0, 3)}, after: []fact{completedIndexes(0, 3), active(1)},
		},
		"completed indexes beyond completions, written in another way": {
			spec: []tweak{indexedOf(3)}, before: []fact{completedIndexes(0, 3)}, after: []fact{completedIndexes(0, 2, 3, 3)},
			want: []string{"CompletedIndexesMalformed" + completed},
		},
		"completed indexes that touch":    {spec: []tweak{indexedOf(3)}, after: []fact{completedIndexes(0, 1, 2, 2)}},
		"completed indexes that descend":  {spec: []tweak{indexedOf(3)}, after: []fact{completedIndexes(2, 2, 0, 0)}, want: []string{"CompletedIndexesMalformed" + completed}},
		"completed indexes that overlap":  {spec: []tweak{indexedOf(3)}, after: []fact{completedIndexes(0, 1, 1, 2)}, want: []string{"CompletedIndexesMalformed" + completed}},
		"a range that ends before itself": {spec: []tweak{indexedOf(3)}, after: []fact{completedIndexes(1, 0)}, want: []string{"CompletedIndexesMalformed" + completed}},
		"a negative index":                {spec: []tweak{indexedOf(3)}, after: []fact{completedIndexes(-1, 0)}, want: []string{"CompletedIndexesMalformed" + completed}},
		"failed indexes without their limit": {
			spec: []tweak{indexedOf(3)}, after: []fact{failedIndexes(1, 1)}, want: []string{"FailedIndexesWithoutBackoffLimitPerIndex" + failed},
		},
		"no failed indexes, but a set of them, without their limit": {
			spec: []tweak{indexedOf(3)}, after: []fact{failedIndexes()}, want: []string{"FailedIndexesWithoutBackoffLimitPerIndex" + failed},
		},
		"failed indexes beyond completions": {spec: both, after: []fact{failedIndexes(5, 5)}, want: []string{"FailedIndexesMalformed" + failed}},
		"an index both ways":                {spec: both, after: []fact{completedIndexes(1, 3), failedIndexes(0, 0, 3, 4)}, want: []string{"IndexCompletedAndFailed" + failed}},
		"an index both ways as before":      {spec: both, before: []fact{completedIndexes(1, 3), failedIndexes(3, 4)}, after: []fact{completedIndexes(1, 3), failedIndexes(3, 4)}},
		"an index both ways beyond completions": {
			spec: both, after: []fact{completedIndexes(5, 5), failedIndexes(5, 5)},
			want: []string{"CompletedIndexesMalformed" + completed, "FailedIndexesMalformed" + failed},
		},
		"indexes side by side": {spec: both, after: []fact{completedIndexes(1, 1, 4, 4), failedIndexes(0, 0, 2, 3)}},
	}
}
