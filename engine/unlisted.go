package engine

import (
	"fmt"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A request may leave finished pods out and only count them (unlisted_pods).
// They are listed in a later round: every round records and releases listed
// ones, which makes room. Until then:
//
//   - Unlisted successes count. It is known how many succeeded, and of an INDEXED
//     Job which indexes.
//   - Unlisted failures count towards backoffLimit where it is certain that they
//     do (unlistedFailuresCount).
//   - A rule by which the Job fails looks at what is listed or certain. More
//     pods can only add to that, so its verdict stands. Which of these rules is
//     named may depend on what was listed first.
//   - A rule by which the Job succeeds waits while unlisted failures may fail the
//     Job (unlistedMayFail), because rules of failure go before it.
//   - No pod is created that an unlisted failure may make superfluous: none at
//     all, or with limits per index none for the indexes of unlisted failures.
//   - No terminal condition is set.
//
// Unlisted pods that are being deleted, and will be judged by how they end, hold
// up nothing but the terminal condition.

// unlistedFailuresCount reports whether every unlisted pod that did not succeed
// is known to count as failed. It is not where such a pod may yet succeed, be
// ignored by the failure policy, or have an index that the Job does not ask for.
func (s *snapshot) unlistedFailuresCount() bool {
	return !s.indexed && !s.replaceFailedOnly()
}

// unlistedFailures is how many unlisted pods have failed already. Those that are
// being deleted and have not ended say nothing before they do.
func (s *snapshot) unlistedFailures() int32 {
	u := s.req.GetUnlistedPods()
	if !s.replaceFailedOnly() {
		return u.GetFailed()
	}
	return u.GetFailed() - u.GetEnding()
}

// uncertainFailures is how many unlisted pods have failed of which it is not
// known whether and how they count.
func (s *snapshot) uncertainFailures() int32 {
	if s.unlistedFailuresCount() {
		return 0
	}
	return s.unlistedFailures()
}

// unlistedMayFail reports whether an unlisted failure may fail the Job, so that
// it must not succeed yet.
func (f facts) unlistedMayFail() bool {
	n := int64(f.uncertainFailures())
	switch {
	case n == 0:
		return false
	case f.hasFailJobRule(), f.tally.failed+n > int64(f.spec.GetBackoffLimit()):
		return true
	case !f.perIndex():
		return false
	case !f.knowsUnlistedIndexes():
		return true
	}
	done := f.tally.succeededIndexes.Union(f.tally.failedIndexes)
	return !f.unlistedFailed.Minus(done).Empty()
}

// hasFailJobRule reports whether a single failed pod may fail the Job.
func (s *snapshot) hasFailJobRule() bool {
	for _, rule := range s.spec.GetPodFailurePolicy().GetRules() {
		if rule.GetAction() == jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB {
			return true
		}
	}
	return false
}

// succeedIfSeen is success, unless failures have to be looked at first.
func succeedIfSeen(f facts, reason, message, detail string) answer {
	if f.unlistedMayFail() {
		return no(fmt.Sprintf("%s, failed %ss that have to be looked at first: %d", detail, f.noun, f.uncertainFailures()))
	}
	return success(reason, message, detail)
}

// knowsUnlistedIndexes reports whether the request says which indexes unlisted
// failures have.
func (s *snapshot) knowsUnlistedIndexes() bool {
	return s.req.GetUnlistedPods().GetFailedIndexes() != nil
}
