package apistatus

import (
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The condition types that the rules are about, and one other.
const (
	complete      = "Complete"
	failed        = "Failed"
	failureTarget = "FailureTarget"
	criteriaMet   = "SuccessCriteriaMet"
	suspended     = "Suspended"
	other         = "Other"
)

var conditionTypes = []string{complete, failed, failureTarget, criteriaMet, suspended, other}

const (
	isTrue  = jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE
	isFalse = jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE
	unknown = jobpolicyv1.ConditionStatus_CONDITION_STATUS_UNKNOWN
)

// A drawer draws statuses. The same source draws the same.
type drawer struct{ *rand.Rand }

func (d drawer) once(in int) bool { return d.IntN(in) == 0 }

func pick[T any](d drawer, choices ...T) T { return choices[d.IntN(len(choices))] }

// next draws a status that follows another one: a step that a controller might take,
// often spoilt.
func (d drawer) next(spec *jobpolicyv1.JobSpec, before *jobpolicyv1.JobStatus) *jobpolicyv1.JobStatus {
	after := proto.CloneOf(before)
	if !d.once(4) {
		pick(d, d.start, d.count, d.declare, d.declare, d.finish, d.finish, d.suspend, d.resume, d.index)(spec, after)
	}
	if !d.once(4) {
		for range 1 + d.IntN(2) {
			pick(d, d.spoilCount, d.spoilCondition, d.spoilTime, d.spoilIndexes, d.spoilUncounted)(after)
		}
	}
	return after
}

// Steps of a controller.

func (d drawer) start(_ *jobpolicyv1.JobSpec, s *jobpolicyv1.JobStatus) {
	if s.StartTime == nil {
		s.StartTime = d.time()
	}
	s.Active = int32(d.IntN(4))
	s.Ready, s.Terminating = proto.Int32(int32(d.IntN(int(s.Active)+1))), proto.Int32(int32(d.IntN(3)))
}

func (d drawer) count(_ *jobpolicyv1.JobSpec, s *jobpolicyv1.JobStatus) {
	s.Succeeded += int32(d.IntN(2))
	s.Failed += int32(d.IntN(2))
	s.Uncounted = &jobpolicyv1.UncountedTerminatedPods{}
	for uid := range byte(d.IntN(4)) {
		if d.once(2) {
			s.Uncounted.Failed = append(s.Uncounted.Failed, podUID(uid))
			continue
		}
		s.Uncounted.Succeeded = append(s.Uncounted.Succeeded, podUID(uid))
	}
}

func (d drawer) declare(_ *jobpolicyv1.JobSpec, s *jobpolicyv1.JobStatus) {
	if is(s, criteriaMet) || is(s, failureTarget) {
		return
	}
	setCondition(s, pick(d, criteriaMet, failureTarget), isTrue)
}

// finish completes what was declared.
func (d drawer) finish(_ *jobpolicyv1.JobSpec, s *jobpolicyv1.JobStatus) {
	if !is(s, criteriaMet) && !is(s, failureTarget) {
		return
	}
	s.Active, s.Ready, s.Terminating, s.Uncounted = 0, proto.Int32(0), proto.Int32(0), nil
	if s.StartTime == nil && !d.once(4) {
		s.StartTime = d.time()
	}
	if is(s, failureTarget) {
		setCondition(s, failed, isTrue)
		return
	}
	setCondition(s, complete, isTrue)
	if s.CompletionTime == nil {
		s.CompletionTime = &timestamppb.Timestamp{Seconds: max(s.GetStartTime().GetSeconds(), firstSecond) + int64(d.IntN(2))}
	}
}

func (d drawer) suspend(spec *jobpolicyv1.JobSpec, s *jobpolicyv1.JobStatus) {
	setCondition(s, suspended, isTrue)
	s.Active, s.Ready = 0, proto.Int32(0)
	if spec.GetSuspend() && d.once(2) {
		s.StartTime = nil
	}
}

func (d drawer) resume(spec *jobpolicyv1.JobSpec, s *jobpolicyv1.JobStatus) {
	if !is(s, suspended) {
		return
	}
	setCondition(s, suspended, isFalse)
	s.StartTime = d.time()
}

// index records indexes, as far as the spec allows.
func (d drawer) index(spec *jobpolicyv1.JobSpec, s *jobpolicyv1.JobStatus) {
	if spec.GetCompletionMode() != jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		return
	}
	s.CompletedIndexes, s.FailedIndexes = &jobpolicyv1.IndexSet{}, nil
	if spec.BackoffLimitPerIndex != nil {
		s.FailedIndexes = &jobpolicyv1.IndexSet{}
	}
	for ix := range spec.GetCompletions() {
		r := &jobpolicyv1.IndexRange{First: ix, Last: ix}
		switch d.IntN(3) {
		case 0:
			s.CompletedIndexes.Ranges = append(s.CompletedIndexes.Ranges, r)
		case 1:
			if s.FailedIndexes != nil {
				s.FailedIndexes.Ranges = append(s.FailedIndexes.Ranges, r)
			}
		}
	}
}

// Statuses that nobody should write.

func (d drawer) spoilCount(s *jobpolicyv1.JobStatus) {
	n := int32(d.IntN(5)) - 1
	switch d.IntN(5) {
	case 0:
		s.Active = n
	case 1:
		s.Ready = pick(d, nil, &n, &n)
	case 2:
		s.Terminating = pick(d, nil, &n, &n)
	case 3:
		s.Succeeded = n
	case 4:
		s.Failed = n
	}
}

func (d drawer) spoilCondition(s *jobpolicyv1.JobStatus) {
	conditionType := pick(d, conditionTypes...)
	switch d.IntN(6) {
	case 0:
		removeCondition(s, conditionType)
	case 1:
		s.Conditions = append(s.Conditions, &jobpolicyv1.JobCondition{Type: conditionType, Status: pick(d, isTrue, isFalse)})
	default:
		setCondition(s, conditionType, pick(d, isTrue, isTrue, isFalse, unknown))
	}
}

func (d drawer) spoilTime(s *jobpolicyv1.JobStatus) {
	at := pick(d, nil, d.time(), d.time())
	if d.once(2) {
		s.StartTime = at
		return
	}
	s.CompletionTime = at
}

func (d drawer) spoilIndexes(s *jobpolicyv1.JobStatus) {
	set := pick(d, nil, d.ranges(), d.ranges())
	if d.once(2) {
		s.CompletedIndexes = set
		return
	}
	s.FailedIndexes = set
}

func (d drawer) spoilUncounted(s *jobpolicyv1.JobStatus) {
	if s.Uncounted == nil {
		s.Uncounted = &jobpolicyv1.UncountedTerminatedPods{}
	}
	uid := pick(d, nil, podUID(0), podUID(1), podUID(1))
	if d.once(2) {
		s.Uncounted.Succeeded = append(s.Uncounted.Succeeded, uid)
		return
	}
	s.Uncounted.Failed = append(s.Uncounted.Failed, uid)
}

// ranges draws short lists, valid and invalid ones.
func (d drawer) ranges() *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	first := int32(0)
	for range d.IntN(4) {
		first += int32(d.IntN(3))
		last := first + int32(d.IntN(2))
		if d.once(12) {
			first, last = last, max(first-1, 0)
		}
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: first, Last: last})
		first = last + 1
		if d.once(8) {
			first = 0
		}
	}
	return set
}

// firstSecond is the earliest time drawn.
const firstSecond = 1_700_000_000

func (d drawer) time() *timestamppb.Timestamp {
	return &timestamppb.Timestamp{Seconds: firstSecond + int64(d.IntN(3))}
}

// podUID is 16 bytes, all but one of them zero.
func podUID(n byte) []byte { return append(make([]byte, 15), n+1) }

func is(s *jobpolicyv1.JobStatus, conditionType string) bool {
	return slices.ContainsFunc(s.GetConditions(), func(c *jobpolicyv1.JobCondition) bool {
		return c.GetType() == conditionType && c.GetStatus() == isTrue
	})
}

func setCondition(s *jobpolicyv1.JobStatus, conditionType string, status jobpolicyv1.ConditionStatus) {
	for _, c := range s.GetConditions() {
		if c.GetType() == conditionType {
			c.Status = status
			return
		}
	}
	s.Conditions = append(s.Conditions, &jobpolicyv1.JobCondition{Type: conditionType, Status: status})
}

func removeCondition(s *jobpolicyv1.JobStatus, conditionType string) {
	var left []*jobpolicyv1.JobCondition
	for _, c := range s.GetConditions() {
		if c.GetType() != conditionType {
			left = append(left, c)
		}
	}
	s.Conditions = left
}
