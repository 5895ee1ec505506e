package state

import (
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/events"
	"jobpolicy.dev/executor/limit"
	"jobpolicy.dev/executor/tracker"
)

// Job is everything that is remembered about one Job UID.
type Job struct {
	UID       types.UID
	Namespace string
	// Pods are the Job's pods.
	Pods *tracker.Tracker
	// Version is the newest version of the Job that was seen.
	Version Version
	// Unanswered are status writes of which it is not known whether they took effect.
	Unanswered Unanswered
	// Backoffs are those of single steps; the rest of the Job goes on.
	Backoffs Backoffs
	// Statuses spaces routine status writes.
	Statuses Statuses
	// Rows limits how many pods a request lists.
	Rows Rows
	// Decisions is what is known of the engine's decisions.
	Decisions Decisions
	// Writes bound the writes in flight about the Job's pods.
	Writes Writes
	// PodEvents are the events about pods that there may still be.
	PodEvents events.Allowance
}

// Writes are a Job's limiters, one for each kind of write.
type Writes struct{ Create, Patch, Delete *limit.Limiter }

// New returns the state of a Job of which nothing is known.
func New(namespace string, uid types.UID, writes *limit.Pool) *Job {
	return &Job{
		UID: uid, Namespace: namespace, Pods: tracker.New(),
		Writes: Writes{
			Create: writes.SlowStart(namespace, uid), Patch: writes.Limiter(namespace, uid), Delete: writes.Limiter(namespace, uid),
		},
	}
}
