package tracker

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/clock"
)

// Step is a step of a decision that has a backoff of its own. So finished pods are counted
// and released even while a quota is exhausted or a webhook refuses new pods.
type Step int

const (
	// Create is the creation of pods.
	Create Step = iota
	// Delete is the deletion of pods.
	Delete
	// DeleteFinished is the deletion of finished pods.
	DeleteFinished
	steps
)

// backoffs are the backoffs of a Job's steps and of the releases of single pods.
type backoffs struct {
	steps    [steps]clock.Backoff
	releases map[types.UID]*release
}

// A release is the backoff of the release of one pod.
type release struct {
	clock.Backoff
	// skipped: since the last call of NextRelease, MayRelease has skipped the pod, because
	// its delay had not ended.
	skipped bool
}

// StepFailed starts the next delay of a step and returns it.
func (j *Job) StepFailed(step Step, limits clock.Limits) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.backoffs.steps[step].Failed(limits)
}

// ShortenStep ends the delay of a step after this time at the latest, and returns how long it is now. The next
// delay is not shorter for that.
func (j *Job) ShortenStep(step Step, delay time.Duration) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.backoffs.steps[step].Shorten(delay)
}

// StepMayGoOn ends the delay of a step: part of the step has succeeded, or a pod has ended and
// made room for a new one.
func (j *Job) StepMayGoOn(step Step) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.backoffs.steps[step].Reset()
}

// StepWaitsUntil is when the last delay of a step ends or has ended; zero if there was none.
func (j *Job) StepWaitsUntil(step Step) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.backoffs.steps[step].Until()
}

// ReleaseFailed starts the next delay of a pod's release and returns it.
func (j *Job) ReleaseFailed(pod types.UID, limits clock.Limits) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := &j.backoffs
	if b.releases == nil {
		b.releases = map[types.UID]*release{}
	}
	if b.releases[pod] == nil {
		b.releases[pod] = &release{}
	}
	return b.releases[pod].Failed(limits)
}

// MayRelease reports whether the pod may be released now: its release is not backing off.
func (j *Job) MayRelease(pod types.UID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.backoffs.releases[pod]
	if r == nil || !r.Active() {
		return true
	}
	r.skipped = true
	return false
}

// NextRelease returns when the first delay of a release ends, and whether there is a reason to try
// again then: the delay runs, or it has ended since MayRelease skipped the pod. It forgets the delays
// of pods that do not have the tracking finalizer any more.
func (j *Job) NextRelease() (at time.Time, again bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.backoffs.releases, func(uid types.UID, _ *release) bool {
		return !j.pods.hasFinalizer(uid)
	})
	for _, r := range j.backoffs.releases {
		if (r.skipped || r.Active()) && (!again || r.Until().Before(at)) {
			at, again = r.Until(), true
		}
		r.skipped = false
	}
	return at, again
}
