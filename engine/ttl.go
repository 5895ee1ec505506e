package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Annotations that say how long a finished Job is kept.
const (
	annotationTTLAfterComplete = "jobpolicy.dev/ttl-seconds-after-complete"
	annotationTTLAfterFailed   = "jobpolicy.dev/ttl-seconds-after-failed"
	annotationDefaultTTL       = "jobpolicy.dev/default-ttl-seconds-after-finished"
	maxTTLSeconds              = 1<<31 - 1
)

// A ttl is how long a finished Job is kept, and who says so.
type ttl struct {
	seconds int64
	source  string
	events  []*jobpolicyv1.JobEvent
}

// An expiration is when a finished Job is to be deleted.
type expiration struct {
	ttl
	// limited says that the Job has a time to live; known, that it says when it
	// finished.
	limited, known bool
	// at is when the time to live is over, if it is limited and known.
	at time.Time
}

// over reports whether the Job is to be deleted now.
func (e expiration) over(now time.Time) bool { return e.limited && e.known && !e.at.After(now) }

// expiration is that of a Job with a terminal condition. The time to live begins
// when the Job finished, by the transition of that condition; one in the future
// (clocks differ) only makes it end later.
func (l lifetime) expiration(condition string) expiration {
	var e expiration
	e.ttl, e.limited = readTTL(l.spec, condition)
	if terminal, _ := trueCondition(l.status, condition); terminal.GetLastTransitionTime() != nil {
		e.known, e.at = true, terminal.GetLastTransitionTime().AsTime().Add(time.Duration(e.seconds)*time.Second)
	}
	return e
}

// expire deletes a finished Job when its time to live is over, and says until
// when it is kept otherwise.
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
		e.Waits = append(e.Waits, waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_TTL, t.at,
			"the Job is kept for %ds after it finished (%s)", t.seconds, t.source))
		e.Summary += "; wait: " + e.GetWaits()[len(e.GetWaits())-1].GetDetail()
		resp.RequeueTime = requeueTime(s, e.GetWaits())
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

// readTTL asks the Job's annotation for this outcome, then its spec, then its
// namespace. An annotation that cannot be read counts as absent.
func readTTL(spec *jobpolicyv1.JobSpec, condition string) (t ttl, limited bool) {
	annotation, text := annotationTTLAfterComplete, spec.GetTtlOptions().GetSecondsAfterComplete()
	has := spec.GetTtlOptions() != nil && spec.GetTtlOptions().SecondsAfterComplete != nil
	if condition == conditionFailed {
		annotation, text = annotationTTLAfterFailed, spec.GetTtlOptions().GetSecondsAfterFailed()
		has = spec.GetTtlOptions() != nil && spec.GetTtlOptions().SecondsAfterFailed != nil
	}
	if has && t.read(annotation, text) {
		return t, true
	}
	if spec.TtlSecondsAfterFinished != nil {
		t.seconds, t.source = int64(spec.GetTtlSecondsAfterFinished()), "spec.ttlSecondsAfterFinished"
		return t, true
	}
	if o := spec.GetTtlOptions(); o != nil && o.NamespaceDefault != nil {
		return t, t.read(annotationDefaultTTL, o.GetNamespaceDefault())
	}
	return t, false
}

func (t *ttl) read(annotation, text string) bool {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err == nil && seconds >= 0 && seconds <= maxTTLSeconds {
		t.seconds, t.source = seconds, "annotation "+annotation
		return true
	}
	const most = 64
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	t.events = append(t.events, &jobpolicyv1.JobEvent{
		Type:   jobpolicyv1.EventType_EVENT_TYPE_WARNING,
		Reason: eventInvalidAnnotation,
		Message: fmt.Sprintf("annotation %s: expected a whole number of seconds from 0 to %d, found %q; it is left aside",
			annotation, maxTTLSeconds, text),
	})
	return false
}
