package engine

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A lifetime holds the values from which the deadlines of a Job are computed. Only
// newLifetime makes one; its messages are never nil.
type lifetime struct {
	spec   *jobpolicyv1.JobSpec
	status *jobpolicyv1.JobStatus
	now    time.Time
}

// newLifetime treats a status that was never written as an empty one.
func newLifetime(spec *jobpolicyv1.JobSpec, status *jobpolicyv1.JobStatus, now *timestamppb.Timestamp) lifetime {
	if status == nil {
		status = &jobpolicyv1.JobStatus{}
	}
	return lifetime{spec, status, now.AsTime()}
}

// resuming reports whether the Job was suspended and no longer is. If the condition
// Suspended is false already, whatever its reason, the Job does not resume: the API
// server refuses to change the start time of a Job that was not suspended. A Job that is being
// deleted does not resume: its condition Suspended stays as it is.
func (l lifetime) resuming() bool {
	_, suspended := trueCondition(l.status, conditionSuspended)
	return suspended && !l.spec.GetSuspend() && !l.spec.GetDeleting()
}

// activeSince is when the Job last started or resumed. started is false for a Job
// that starts or resumes with this decision; an older start time does not count then.
func (l lifetime) activeSince() (start time.Time, started bool) {
	if l.status.GetStartTime() == nil || l.resuming() {
		return l.now.Truncate(time.Second), false
	}
	return l.status.GetStartTime().AsTime(), true
}
