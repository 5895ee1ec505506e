package engine

import (
	"fmt"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// backoffLimitExceeded: more pods failed than spec.backoffLimit allows, or,
// with restartPolicy OnFailure, the containers of unfinished pods restarted that many
// times. The two are not added up (upstream pastBackoffLimitOnFailure, v1.37).
func backoffLimitExceeded(f facts) answer {
	const message = "Job has reached the specified backoff limit"
	limit := int64(f.spec.GetBackoffLimit())
	detail := fmt.Sprintf("failed pods %d, backoffLimit %d", f.tally.failed, limit)
	if f.tally.failed > limit {
		return failure(reasonBackoffLimitExceeded, message, detail)
	}
	if f.spec.GetRestartPolicy() != jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE {
		return no(detail)
	}
	detail = fmt.Sprintf("%s; container restarts %d", detail, f.pods.GetRestarts())
	if f.undecidedDeletion() && f.pods.GetTerminating() > 0 {
		return no(detail + ", of which some may be of pods that are deleted with the Job")
	}
	// The restart that reaches the limit fails the Job; with a limit of 0, the first
	// restart does.
	if restarts := f.pods.GetRestarts(); restarts >= max(limit, 1) {
		return failure(reasonBackoffLimitExceeded, message, detail)
	}
	return no(detail)
}
