package engine

import (
	"fmt"
	"time"
)

// deadlinePassed: the Job has been active for spec.activeDeadlineSeconds since its
// start time. A suspended Job is not active; it gets a new start time when it
// resumes. A deadline of 0, which the API server accepts, passes as soon as the Job
// starts.
func deadlinePassed(f facts) answer {
	_, started := f.activeSince()
	switch {
	case f.spec.ActiveDeadlineSeconds == nil:
		return no("the Job has no deadline")
	case f.held():
		return no("the Job does not start")
	case f.spec.GetSuspend():
		return no("a suspended Job's deadline does not run")
	case !started && f.spec.GetActiveDeadlineSeconds() > 0:
		return no("the Job starts with this decision")
	}
	elapsed, over := f.overDeadline()
	detail := fmt.Sprintf("active for %ds of %ds", elapsed, f.spec.GetActiveDeadlineSeconds())
	if over {
		return failure(reasonDeadlineExceeded, "Job was active longer than specified deadline", detail)
	}
	return no(detail)
}

// overDeadline is how many seconds the Job has been active, and whether its deadline
// has passed. The Job must have a deadline and not be suspended.
func (l lifetime) overDeadline() (elapsed int64, over bool) {
	return l.over(l.spec.GetActiveDeadlineSeconds())
}

// over is how many seconds have passed since the Job started or resumed, and whether these are at least so many.
func (l lifetime) over(seconds int64) (elapsed int64, over bool) {
	start, _ := l.activeSince()
	elapsed = l.now.Unix() - start.Unix() // A Duration holds 292 years only.
	if l.now.Nanosecond() < start.Nanosecond() {
		elapsed--
	}
	return elapsed, elapsed >= seconds
}

// maxDeadline is the longest deadline that gets a requeue time. Nobody waits longer,
// and later times may not fit a timestamp.
const maxDeadline = 100 * 365 * 24 * time.Hour

// deadlineRuns reports whether the Job has a deadline and is not suspended.
func (l lifetime) deadlineRuns() bool {
	return l.spec.ActiveDeadlineSeconds != nil && !l.spec.GetSuspend()
}

// activeDeadline is when the deadline passes; ok is false if no deadline is running,
// or one that is longer than maxDeadline.
// For a Job that starts with this decision the time runs from now. The deadline of a Job
// that is being deleted runs, too, as upstream's does: a finalizer may keep the Job for
// long.
func (l lifetime) activeDeadline() (at time.Time, ok bool) {
	if !l.deadlineRuns() {
		return time.Time{}, false
	}
	return l.after(l.spec.GetActiveDeadlineSeconds())
}

// after is the time so many seconds after the Job started or resumed; ok is false for more
// than maxDeadline.
func (l lifetime) after(seconds int64) (at time.Time, ok bool) {
	if seconds > int64(maxDeadline/time.Second) {
		return time.Time{}, false
	}
	start, _ := l.activeSince()
	return start.Add(time.Duration(seconds) * time.Second), true
}
