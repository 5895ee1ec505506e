package engine

import (
	"jobpolicy.dev/engine/internal/check"
	"jobpolicy.dev/engine/statusrules"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxItems is how many statuses or Jobs one request may ask about, where the proto file says so.
const maxItems = 1000

// CheckJobStatus says whether an API server accepts updates of Jobs' statuses, and
// which rules each update breaks. The rules are those of package statusrules, which
// callers in the same process can also use directly.
//
// Errors are those of DecideJob: *InvalidRequestError and *UnsupportedError. A status
// that the API server refuses is not an error.
func CheckJobStatus(req *jobpolicyv1.CheckJobStatusRequest) (*jobpolicyv1.CheckJobStatusResponse, error) {
	if err := checkRequest(req, func(c checker) {
		c.apiServer(req)
		check.Each(c.Checker, "updates", maxItems, req.GetUpdates(), c.statusUpdate)
	}); err != nil {
		return nil, err
	}
	server := statusrules.Default(req.GetKubernetesMinor())
	if req.JobManagedByGate != nil {
		server.JobManagedBy = req.GetJobManagedByGate()
	}
	resp := &jobpolicyv1.CheckJobStatusResponse{}
	for _, u := range req.GetUpdates() {
		answer := &jobpolicyv1.JobStatusCheck{}
		for _, v := range server.Check(statusrules.Transition{Spec: u.GetSpec(), Before: u.GetBefore(), After: u.GetAfter()}) {
			answer.Violations = append(answer.Violations,
				&jobpolicyv1.StatusViolation{Rule: v.Rule, Field: v.Field, Description: v.Description})
		}
		resp.Checks = append(resp.Checks, answer)
	}
	return resp, nil
}

// statusUpdate refuses only what the API cannot express, and what would make the
// answer meaningless. An invalid status is not refused: the answer lists the rules that
// it breaks.
func (c checker) statusUpdate(u *jobpolicyv1.JobStatusUpdate) {
	c.checkedSpec(u.GetSpec())
	c.checkedStatus("before", u.GetBefore())
	c.Require(u.GetAfter() != nil, "after", "is required")
	c.checkedStatus("after", u.GetAfter())
}

func (c checker) apiServer(req *jobpolicyv1.CheckJobStatusRequest) {
	minor := req.GetKubernetesMinor()
	if !c.Between("kubernetes_minor", int64(minor), statusrules.OldestMinor, statusrules.NewestMinor) || req.JobManagedByGate == nil {
		return
	}
	c.Require(statusrules.GateSettable(minor, req.GetJobManagedByGate()), "job_managed_by_gate",
		"must not be %t in v1.%d: the gate does not exist before v1.30, and is locked on from v1.35", req.GetJobManagedByGate(), minor)
}

// checkedSpec checks the fields that the rules read.
func (c checker) checkedSpec(spec *jobpolicyv1.JobSpec) {
	if !c.Require(spec != nil, "spec", "is required") {
		return
	}
	c.NotNegative("spec.parallelism", int64(spec.GetParallelism()))
	c.NotNegative("spec.completions", int64(spec.GetCompletions()))
	c.NotNegative("spec.backoff_limit_per_index", int64(spec.GetBackoffLimitPerIndex()))
}

func (c checker) checkedStatus(field string, s *jobpolicyv1.JobStatus) {
	c.OptionalTime(field+".start_time", s.GetStartTime())
	c.OptionalTime(field+".completion_time", s.GetCompletionTime())
	c.Length(field+".completed_indexes.ranges", len(s.GetCompletedIndexes().GetRanges()), maxRanges)
	c.Length(field+".failed_indexes.ranges", len(s.GetFailedIndexes().GetRanges()), maxRanges)
	c.Length(field+".uncounted.succeeded", len(s.GetUncounted().GetSucceeded()), maxRows)
	c.Length(field+".uncounted.failed", len(s.GetUncounted().GetFailed()), maxRows)
	if !c.conditionsCount(field+".conditions", s.GetConditions()) {
		return
	}
	for i, condition := range s.GetConditions() {
		c.Enter(field+".conditions", i)
		c.BytesBetween("type", condition.GetType(), 1, maxTypeBytes)
		c.Require(condition.GetStatus() != 0, "status", "is required")
		c.Leave()
	}
}
