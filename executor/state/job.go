package state

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/events"
	"jobpolicy.dev/executor/limit"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
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
	// Refusals are the writes for the Job that the API server refuses.
	Refusals writes.Refusals
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

// PruneRefusals forgets the refusals of what is not to be written any more: releases of pods that do not
// have the tracking finalizer, and all but releases and deletions once the Job has finished.
func (s *Job) PruneRefusals() {
	altered := s.Tracker.Altered()
	s.Refusals.Keep(writes.ReleasePod, func(uid string) bool {
		pod, known := s.Tracker.Pod(types.UID(uid))
		return known && pod.HasTrackingFinalizer ||
			slices.ContainsFunc(altered, func(pod *podcache.Pod) bool { return string(pod.UID) == uid })
	})
	if job := s.Version.Current(); job != nil && wire.FinishedCondition(job) != nil {
		s.Refusals.Over(writes.CreatePod, writes.CreateWorkload, writes.CreatePodGroup, writes.ChangeGang, writes.UseWorkload, writes.AdoptPod, writes.DisownPod, writes.UpdateStatus)
	}
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
