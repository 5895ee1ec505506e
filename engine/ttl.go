package engine

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/internal/waits"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A ttl is how long a finished Job is kept, and where that was set.
type ttl struct {
	seconds int64
	source  string
}

// An expiration is when a finished Job is to be deleted.
type expiration struct {
	ttl
	// limited says that the Job has a time to live; known says that its finish time is
	// known.
	limited, known bool
	// at is when the time to live is over, if it is limited and known.
	at time.Time
}

// over reports whether the Job is to be deleted now.
func (e expiration) over(now time.Time) bool { return e.limited && e.known && !e.at.After(now) }

// expiration returns the expiration of a Job with a terminal condition. The time to
// live begins at the last transition of that condition. If clocks differ and the
// transition is in the future, the time to live only ends later.
func (l lifetime) expiration(condition string) expiration {
	var e expiration
	e.ttl, e.limited = l.timeToLive(condition)
	if terminal, _ := trueCondition(l.status, condition); terminal.GetLastTransitionTime() != nil {
		e.known, e.at = true, terminal.GetLastTransitionTime().AsTime().Add(time.Duration(e.seconds)*time.Second)
	}
	return e
}

// expire asks to delete a finished Job when its time to live is over, and otherwise
// says until when it is kept. A Job whose options are not known is kept: they may say for
// longer than its spec does, and a deletion cannot be undone.
func expire(s *snapshot, condition string, resp *jobpolicyv1.DecideJobResponse) {
	e := resp.GetExplanation()
	switch {
	case s.spec.GetDeleting():
		e.Summary += "; it is being deleted"
		return
	case s.deleting():
		e.Summary += "; its namespace is being deleted"
		return
	case s.optionsLost():
		kept := s.policyWait()
		e.Waits = waits.List{kept}
		e.Summary += "; it is kept, because its options may say for how long; wait: " + kept.GetDetail()
		return
	}
	t := s.expiration(condition)
	switch {
	case !t.limited:
	case !t.known:
		e.Summary += "; it is kept, because nothing says when it finished"
	case !t.over(s.now):
		kept := waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_TTL, t.at,
			"the Job is kept for %ds after it finished (%s)", t.seconds, t.source)
		e.Waits = waits.List{kept}
		e.Summary += "; wait: " + kept.GetDetail()
		resp.RequeueTime = waits.List{kept}.RequeueTime(s.now)
	default:
		e.Summary = strings.TrimSuffix(e.GetSummary(), "; nothing to do") + fmt.Sprintf("; delete it, kept for %ds after it finished (%s)", t.seconds, t.source)
		resp.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
		resp.DeleteJob = &jobpolicyv1.DeleteJob{
			Uid:     s.req.GetJob().GetUid(),
			Name:    s.req.GetJob().GetName(),
			Reason:  jobpolicyv1.DeleteJobReason_DELETE_JOB_REASON_TTL_EXPIRED,
			DueTime: timestamppb.New(t.at),
		}
	}
}

// timeToLive asks the option for this outcome, then the Job's spec, then the option for
// Jobs whose spec says nothing.
func (l lifetime) timeToLive(condition string) (t ttl, limited bool) {
	options := l.spec.GetOptions()
	if options == nil {
		options = &jobpolicyv1.JobOptions{}
	}
	ofOutcome := source{options.TtlSecondsAfterComplete, "job.ttlSecondsAfterComplete"}
	if condition == conditionFailed {
		ofOutcome = source{options.TtlSecondsAfterFailed, "job.ttlSecondsAfterFailed"}
	}
	for _, s := range []source{
		ofOutcome,
		{l.spec.TtlSecondsAfterFinished, "spec.ttlSecondsAfterFinished"},
		{options.DefaultTtlSecondsAfterFinished, "job.defaultTtlSecondsAfterFinished"},
	} {
		if s.seconds != nil {
			return ttl{int64(*s.seconds), s.name}, true
		}
	}
	return ttl{}, false
}

// A source is a field that may set a time to live; nil: it sets none.
type source struct {
	seconds *int32
	name    string
}
