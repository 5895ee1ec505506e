package state

import (
	"time"

	"jobpolicy.dev/executor/events"
	"jobpolicy.dev/executor/limit"
	"jobpolicy.dev/executor/tracker"
)

// Job is what the executor remembers of one Job UID.
type Job struct {
	Key
	// Tracker has the facts about the Job's pods.
	Tracker *tracker.Tracker
	// Version is the newest version of the Job.
	Version Version
	// Unanswered are status writes whose outcome is unknown.
	Unanswered Unanswered
	// Backoffs delay single steps while the other steps go on.
	Backoffs Backoffs
	// Statuses sets the time between routine status writes.
	Statuses Statuses
	// Rows limits how many pods a request lists.
	Rows Rows
	// Decisions is what is known of the engine's decisions.
	Decisions Decisions
	// Writes bound how many writes about the Job's pods are in flight.
	Writes Writes
	// PodEvents limits the events about the Job's pods.
	PodEvents events.Allowance
	// Standstill is when the last standstill of the Job's creations ends or ended that was told. Only
	// reconciles of the Job use it.
	Standstill time.Time
}

// Writes are a Job's limiters, one for each kind of write.
type Writes struct{ Create, Patch, Delete *limit.Limiter }

// New returns the state of a Job about which nothing is known.
func New(key Key, writes *limit.Pool) *Job {
	return &Job{
		Key: key, Tracker: tracker.New(),
		Writes: Writes{
			Create: writes.SlowStart(key.Namespace, key.UID), Patch: writes.Limiter(key.Namespace, key.UID), Delete: writes.Limiter(key.Namespace, key.UID),
		},
	}
}
