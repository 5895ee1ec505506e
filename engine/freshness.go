package engine

import (
	"strconv"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// staleness says what the caller has written but not yet seen, and what it has to
// read again; nil if its view is current. A decision on a stale view could create
// pods twice (I6).
func staleness(f *jobpolicyv1.Freshness, noun string) (*jobpolicyv1.Wait, jobpolicyv1.Requirement) {
	if older(f.GetJobObserved(), f.GetJobWritten()) {
		return wait(jobpolicyv1.WaitReason_WAIT_REASON_STALE_JOB,
			"the Job was read at resource version %s, but written at %s", f.GetJobObserved(), f.GetJobWritten()), jobpolicyv1.Requirement_REQUIREMENT_CURRENT_JOB
	}
	if older(f.GetPodsObserved(), f.GetPodsWritten()) {
		return wait(jobpolicyv1.WaitReason_WAIT_REASON_STALE_PODS,
			"%ss were read at resource version %s, but written at %s", noun, f.GetPodsObserved(), f.GetPodsWritten()), jobpolicyv1.Requirement_REQUIREMENT_CURRENT_PODS
	}
	return nil, 0
}

// older compares resource versions, which validation has found to be numbers. If
// nothing was written, no view is too old. If nothing was observed, every write is
// newer.
func older(observed, written string) bool {
	if written == "" {
		return false
	}
	seen, _ := strconv.ParseUint(observed, 10, 64)
	own, _ := strconv.ParseUint(written, 10, 64)
	return seen < own
}
