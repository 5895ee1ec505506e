package engine

import (
	"fmt"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A request may leave finished pods out and only count them (unlisted_pods). A later
// request lists them: every decision records and releases listed pods, which makes
// room. Until then:
//
//   - Unlisted successes count, unless they may be deleted with their Job (deletion.go).
//     The request says how many pods succeeded, and of an INDEXED Job which indexes.
//   - Unlisted failures count towards backoffLimit if it is certain that they count
//     (unlistedFailuresCount).
//   - A rule by which the Job fails uses only what is listed or certain. More pods
//     can only add failures, so its verdict is right. Which of these rules decides
//     may depend on what was listed first.
//   - A rule by which the Job succeeds waits while unlisted failures may fail the Job
//     (unlistedMayFail), because the failure rules come before it.
//   - No pod is created that an unlisted failure may make unnecessary: with limits
//     per index, none for the indexes of unlisted failures; otherwise none at all.
//   - No terminal condition is set.
//
// Unlisted pods that are being deleted, and that count only after they have ended,
// delay nothing but the terminal condition.

// unlistedFailuresCount reports whether every unlisted pod that did not succeed is
// known to count as failed. That is not known if such a pod may still succeed, may be
// ignored by the failure policy, may have an index that is out of range, or may be
// deleted with its Job.
func (s *snapshot) unlistedFailuresCount() bool {
	return !s.indexed && !s.replaceFailedOnly() && !s.undecidedDeletion()
}

// unlistedFailures is how many unlisted pods have failed already. If pods count only
// after they have ended, those that are still ending are not included, unless they are overdue.
func (s *snapshot) unlistedFailures() int32 {
	u := s.req.GetUnlistedPods()
	if !s.replaceFailedOnly() {
		return u.GetFailed()
	}
	return u.GetFailed() - max(0, u.GetTerminating()-s.unlistedLost)
}

// uncertainFailures is the number of failed unlisted pods of which it is not known
// whether they count, or how.
func (s *snapshot) uncertainFailures() int32 {
	if s.unlistedFailuresCount() {
		return 0
	}
	return s.unlistedFailures()
}

// unlistedMayFail reports whether an unlisted failure may fail the Job, so that
// it must not succeed yet. With limits per index, an index that fails for good fails the
// Job only if too many indexes have failed, or if no index is left to run.
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
	open := f.unlistedFailed.Minus(done).Len()
	limit := f.spec.MaxFailedIndexes
	tooMany := limit != nil && f.tally.failedIndexes.Len()+open > int64(*limit)
	return open > 0 && (tooMany || done.Len()+open >= int64(f.spec.GetCompletions()))
}

// hasFailJobRule reports whether a single failed pod may fail the Job.
func (s *snapshot) hasFailJobRule() bool {
	return slices.ContainsFunc(s.spec.GetPodFailurePolicy().GetRules(), func(rule *jobpolicyv1.PodFailurePolicyRule) bool {
		return rule.GetAction() == jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB
	})
}

// succeedIfSeen is success, unless unlisted failures have to be listed first.
func succeedIfSeen(f facts, reason, message, detail string) answer {
	if f.unlistedMayFail() {
		return no(fmt.Sprintf("%s, failed pods that the request does not list yet: %d", detail, f.uncertainFailures()))
	}
	return success(reason, message, detail)
}

// knowsUnlistedIndexes reports whether the request says which indexes unlisted
// failures have.
func (s *snapshot) knowsUnlistedIndexes() bool {
	return s.req.GetUnlistedPods().GetFailedIndexes() != nil
}
