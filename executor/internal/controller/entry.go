package controller

import (
	"errors"
	"time"

	"jobpolicy.dev/executor/internal/clock"
)

// Priority is how urgent it is to reconcile a key.
type Priority int

const (
	// PriorityLow may wait while the API server is busy.
	PriorityLow Priority = iota - 1
	// PriorityNormal waits until Options.MinInterval is over.
	PriorityNormal
	// PriorityHigh does not wait for Options.MinInterval.
	PriorityHigh
)

// State is what a Queue knows of a key.
type State struct {
	Pending bool      // There was an event, and no reconcile has begun since.
	Running bool      // It is being reconciled.
	Last    time.Time // When the last reconcile began or ended.
	Planned time.Time // When it will be reconciled if no event comes; zero: never.
	// BackoffUntil is when the delay after failures ends; zero: there is none.
	BackoffUntil time.Time
}

// entry is what a Queue remembers of a key.
type entry struct {
	cause    Cause     // Of the first event since the last reconcile began; "": no event came.
	since    time.Time // When that event came.
	priority Priority  // The highest one of the events since then.

	running bool
	last    time.Time
	planned time.Time
	backoff clock.Backoff
	// engineAway: the last reconcile failed because the engine did not answer.
	engineAway bool
	// retriedEarly is when the engine's return last ended the backoff.
	retriedEarly time.Time
}

func (e *entry) pending() bool { return e.cause != "" }

// hasReason reports whether there is a reason for a reconcile, now or later.
func (e *entry) hasReason() bool { return e.pending() || e.backoff.Failing() || !e.planned.IsZero() }

// event records an event.
func (e *entry) event(cause Cause, priority Priority, now time.Time) {
	if e.pending() {
		e.priority = max(e.priority, priority)
		return
	}
	e.cause, e.since, e.priority = cause, now, priority
}

// wait is how long the key has to wait for its next reconcile; 0: it is due.
func (e *entry) wait(now time.Time, minInterval time.Duration, eventsWait bool) time.Duration {
	var at time.Time
	if eventsWait || !e.pending() {
		at = e.backoff.Until()
	}
	if !e.pending() && e.planned.After(at) {
		at = e.planned
	}
	if spaced := e.last.Add(minInterval); e.priority < PriorityHigh && spaced.After(at) {
		at = spaced
	}
	return max(0, at.Sub(now))
}

// lowPriorityWait is how long a key of low priority waits before the queue asks again whether
// the API server is busy; 0: it waits no longer. Altogether a key waits LowPriority.Max or a
// little more, and not beyond the time for which a reconcile is planned.
func (e *entry) lowPriorityWait(now time.Time, low LowPriority) time.Duration {
	switch {
	case !e.pending() || e.priority > PriorityLow || now.Sub(e.since) >= low.Max:
		return 0
	case e.planned.IsZero():
		return low.Period
	default:
		return min(low.Period, e.planned.Sub(now))
	}
}

// begin begins a reconcile, and returns what triggered it.
func (e *entry) begin(now time.Time) Trigger {
	t := Trigger{Cause: e.cause, At: e.since}
	switch {
	case e.pending():
	case e.backoff.Failing():
		t = Trigger{CauseRetry, now}
	default:
		t = Trigger{CauseTimer, now}
	}
	e.cause, e.priority, e.planned = "", PriorityNormal, time.Time{}
	e.last, e.running = now, true
	return t
}

func (e *entry) succeeded() {
	e.endBackoff()
	e.last = time.Now()
}

// failed begins the delay after a failure. A rejection has the longest delay, because only
// a change of the object or of the engine can end it. latest: see Result.RequeueAfter.
func (e *entry) failed(err error, limits clock.Limits, latest time.Duration) (delay time.Duration) {
	if errors.Is(err, ErrRejected) {
		delay = e.backoff.FailedForLong(limits)
	} else {
		delay = e.backoff.Failed(limits)
	}
	if latest > 0 {
		delay = e.backoff.Shorten(latest)
	}
	e.engineAway = errors.Is(err, ErrEngine)
	e.last, e.planned = time.Now(), e.backoff.Until()
	return delay
}

func (e *entry) endBackoff() {
	e.backoff.Reset()
	e.engineAway = false
}

// engineIsBack ends the backoff if the engine's absence was its cause, and reports whether
// it did. It does so at most once in a period: if the engine never answers about one key,
// each answer about another key looks as if the engine had come back.
func (e *entry) engineIsBack(period time.Duration) bool {
	now := time.Now()
	if !e.engineAway || now.Sub(e.retriedEarly) < period {
		return false
	}
	e.retriedEarly = now
	e.endBackoff()
	return true
}
