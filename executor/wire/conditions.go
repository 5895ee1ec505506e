package wire

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract on the texts of a condition or an event, in bytes.
const (
	MaxReasonBytes  = 1024
	MaxMessageBytes = 32768
)

// Started is a condition of a Job with a deadline to start: whether one of its pods has run.
const Started batchv1.JobConditionType = "jobpolicy.dev/Started"

// DecidedByEngine reports whether the engine writes conditions of this type.
func DecidedByEngine(t batchv1.JobConditionType) bool {
	switch t {
	case batchv1.JobSuspended, batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget, batchv1.JobComplete, batchv1.JobFailed,
		Started, jobend.ConditionType:
		return true
	}
	return false
}

// conditionMessages converts the conditions that the engine writes, one of each type. The
// API server accepts several of one type; then a true one is preferred.
func conditionMessages(in []batchv1.JobCondition) []*jobpolicyv1.JobCondition {
	var out []*jobpolicyv1.JobCondition
	place := map[batchv1.JobConditionType]int{}
	for i := range in {
		c := &in[i]
		at, again := place[c.Type]
		switch {
		case !DecidedByEngine(c.Type):
		case !again:
			place[c.Type] = len(out)
			out = append(out, conditionMessage(c))
		case c.Status == corev1.ConditionTrue && apiConditionStatus(out[at].GetStatus()) != corev1.ConditionTrue:
			out[at] = conditionMessage(c)
		}
	}
	return out
}

// withOtherConditions returns the conditions that were decided on, and those of the Job
// that the engine does not write. Those that the Job had keep their order; new ones come
// last.
func withOtherConditions(had, next []batchv1.JobCondition) []batchv1.JobCondition {
	left := slices.Clone(next)
	var out []batchv1.JobCondition
	for _, c := range had {
		if !DecidedByEngine(c.Type) {
			out = append(out, c)
			continue
		}
		at := slices.IndexFunc(left, func(l batchv1.JobCondition) bool { return l.Type == c.Type })
		if at >= 0 {
			out = append(out, left[at])
			left = slices.Delete(left, at, at+1)
		}
	}
	return append(out, left...)
}

func conditionMessage(c *batchv1.JobCondition) *jobpolicyv1.JobCondition {
	return &jobpolicyv1.JobCondition{
		Type:               string(c.Type),
		Status:             conditionStatusMessage(c.Status),
		Reason:             Text(c.Reason, MaxReasonBytes),
		Message:            Text(c.Message, MaxMessageBytes),
		LastProbeTime:      timeMessage(&c.LastProbeTime),
		LastTransitionTime: timeMessage(&c.LastTransitionTime),
	}
}

func apiCondition(c *jobpolicyv1.JobCondition) batchv1.JobCondition {
	out := batchv1.JobCondition{
		Type: batchv1.JobConditionType(c.GetType()), Status: apiConditionStatus(c.GetStatus()),
		Reason: c.GetReason(), Message: c.GetMessage(),
	}
	if at := APITime(c.GetLastProbeTime()); at != nil {
		out.LastProbeTime = *at
	}
	if at := APITime(c.GetLastTransitionTime()); at != nil {
		out.LastTransitionTime = *at
	}
	return out
}
