package tracker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/events"
	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
)

// Job is what is known of one Job and of its pods. It is safe for use by many goroutines.
//
// Every exported method of Job, Creation and List takes mu, and so does the function that BeginCall
// returns. Of the others only unused takes it. Whoever holds mu calls nothing outside of the package that
// takes a lock, save Refusals and what SweepPods is given.
type Job struct {
	Key
	// Refusals are the writes for the Job that the API server refuses.
	Refusals writes.Refusals
	// Writes bound how many writes about the Job's pods are in flight.
	Writes Writes
	// PodEvents limits the events about the Job's pods.
	PodEvents events.Allowance
	// Standstill is when the last standstill of the Job's creations ends or ended that was told. Only
	// reconciles of the Job use it.
	Standstill time.Time

	mu sync.Mutex

	// The pods.
	pods   pods
	absent absences
	calls  calls
	nodes  []string // on which the last View depends.

	// The Job itself, and its status.
	version    version
	unanswered unanswered
	statuses   statuses

	// What was decided, and what waits.
	decisions decisions
	rows      rows
	backoffs  backoffs
}

// New returns a Job about which nothing is known. pool bounds its writes; nil: it has no limiters.
func New(key Key, pool *limit.Pool) *Job {
	j := &Job{Key: key, pods: newPods(), absent: absences{}, calls: calls{creations: map[*Creation]struct{}{}}}
	if pool != nil {
		j.Writes = Writes{
			Create: pool.SlowStart(key.Namespace, key.UID), Patch: pool.Limiter(key.Namespace, key.UID), Delete: pool.Limiter(key.Namespace, key.UID),
		}
	}
	return j
}

// Writes are a Job's limiters, one for each kind of write.
type Writes struct{ Create, Patch, Delete *limit.Limiter }

// PruneRefusals forgets the refusals of what is not to be written any more: releases of pods that do not
// have the tracking finalizer, and all but releases and deletions once the Job has finished.
func (j *Job) PruneRefusals() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Refusals.Keep(writes.ReleasePod, func(pod string) bool {
		uid := types.UID(pod)
		return j.pods.hasFinalizer(uid) || j.calls.altered[uid] != nil
	})
	if job := j.version.job; job != nil && wire.FinishedCondition(job) != nil {
		j.Refusals.Over(writes.CreatePod, writes.CreateWorkload, writes.CreatePodGroup, writes.ChangeGang, writes.UseWorkload, writes.AdoptPod, writes.DisownPod, writes.EndPod, writes.UpdateStatus)
	}
}
