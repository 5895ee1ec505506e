package engine

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/annotation"
	"jobpolicy.dev/engine/internal/waits"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const maxTTLSeconds = 1<<31 - 1

// A ttl is how long a finished Job is kept, and where that was set.
type ttl struct {
	seconds int64
	source  string
	events  []*jobpolicyv1.JobEvent
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
// says until when it is kept.
func expire(s *snapshot, condition string, resp *jobpolicyv1.DecideJobResponse) {
	e := resp.GetExplanation()
	switch {
	case s.spec.GetDeleting():
		e.Summary += "; it is being deleted"
		return
	case s.deleting():
		e.Summary += "; its namespace is being deleted"
		return
	}
	t := s.expiration(condition)
	resp.Events = append(resp.Events, t.events...)
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

// timeToLive asks the Job's annotation for this outcome, then its spec, then its
// namespace. An annotation that cannot be read counts as absent.
func (l lifetime) timeToLive(condition string) (t ttl, limited bool) {
	name := annotation.TTLAfterComplete
	if condition == conditionFailed {
		name = annotation.TTLAfterFailed
	}
	if t.read(l.spec.GetAnnotations(), name) {
		return t, true
	}
	if l.spec.TtlSecondsAfterFinished != nil {
		t.seconds, t.source = int64(l.spec.GetTtlSecondsAfterFinished()), "spec.ttlSecondsAfterFinished"
		return t, true
	}
	return t, t.read(l.namespace, annotation.DefaultTTL)
}

// read takes the time to live from an annotation; false if the annotation is absent
// or cannot be read.
func (t *ttl) read(annotations map[string]string, name string) bool {
	r := annotation.Reader{Annotations: annotations}
	seconds, ok := r.Number(name, "a whole number of seconds", 0, maxTTLSeconds)
	for _, problem := range r.Problems {
		t.events = append(t.events, &jobpolicyv1.JobEvent{
			Type: jobpolicyv1.EventType_EVENT_TYPE_WARNING, Reason: eventInvalidAnnotation, Message: problem,
		})
	}
	if ok {
		t.seconds, t.source = seconds, "annotation "+name
	}
	return ok
}
