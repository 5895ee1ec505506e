package engine

import (
	"fmt"
	"time"
)

// deadlinePassed: the Job has been active for spec.activeDeadlineSeconds since
// its start time. A suspended Job is not active; its start time is set anew
// when it resumes. A deadline of 0, which the API server takes, passes as soon as
// the Job starts.
func deadlinePassed(f facts) answer {
	start, started := f.activeSince()
	switch {
	case f.spec.ActiveDeadlineSeconds == nil:
		return no("the Job has no deadline")
	case f.spec.GetSuspend():
		return no("a suspended Job's deadline does not run")
	case !started && f.spec.GetActiveDeadlineSeconds() > 0:
		return no("the Job starts in this round")
	}
	elapsed := f.now.Unix() - start.Unix() // A Duration holds 292 years only.
	if f.now.Nanosecond() < start.Nanosecond() {
		elapsed--
	}
	detail := fmt.Sprintf("active for %ds of %ds", elapsed, f.spec.GetActiveDeadlineSeconds())
	if elapsed >= f.spec.GetActiveDeadlineSeconds() {
		return failure(reasonDeadlineExceeded, "Job was active longer than specified deadline", detail)
	}
	return no(detail)
}

// maxDeadline is the longest deadline that is looked at again: nobody waits
// longer, and later times do not fit a timestamp.
const maxDeadline = 100 * 365 * 24 * time.Hour

// deadlineTime is when the deadline passes; ok is false if none is running, or
// if the Job is being deleted, for which it changes nothing. A Job that starts
// in this round counts from now.
func deadlineTime(s *snapshot) (at time.Time, ok bool) {
	seconds := s.spec.GetActiveDeadlineSeconds()
	if s.spec.ActiveDeadlineSeconds == nil || s.spec.GetSuspend() || s.spec.GetDeleting() || seconds > int64(maxDeadline/time.Second) {
		return time.Time{}, false
	}
	start, _ := s.activeSince()
	return start.Add(time.Duration(seconds) * time.Second), true
}
