package state

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/tracker"
)

// Step is a step of a decision that backs off by itself: finished pods are counted and
// released however long a quota stays exhausted or a webhook refuses.
type Step int

const (
	// Create is the creation of pods.
	Create Step = iota
	// Delete is the deletion of pods.
	Delete
	steps
)

// Backoffs are the backoffs of a Job's steps, and of the releases of single pods.
type Backoffs struct {
	mu       sync.Mutex
	steps    [steps]controller.Backoff
	releases map[types.UID]*controller.Backoff
}

// Failed begins the next delay of a step, and returns how long it is.
func (b *Backoffs) Failed(step Step, limits controller.Limits) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.steps[step].Failed(limits)
}

// Reset ends the delay of a step: some of it was done after all, or, of creation, a pod
// has ended and made room for another.
func (b *Backoffs) Reset(step Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps[step].Reset()
}

// Until is when the delay of a step ends or has ended; zero: there was none.
func (b *Backoffs) Until(step Step) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.steps[step].Until()
}

// ReleaseFailed begins the next delay of a pod's release, and returns how long it is.
func (b *Backoffs) ReleaseFailed(pod types.UID, limits controller.Limits) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.releases == nil {
		b.releases = map[types.UID]*controller.Backoff{}
	}
	if b.releases[pod] == nil {
		b.releases[pod] = &controller.Backoff{}
	}
	return b.releases[pod].Failed(limits)
}

// Releasing reports whether the pod may be released now.
func (b *Backoffs) Releasing(pod types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.releases[pod] == nil || !b.releases[pod].Active()
}

// NextRelease is how long until the first delay of a release ends; 0: none is under way.
// The delays of pods without the tracking finalizer are forgotten.
func (b *Backoffs) NextRelease(pods *tracker.Tracker) (next time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.releases, func(uid types.UID, _ *controller.Backoff) bool {
		pod, known := pods.Pod(uid)
		return !known || !pod.HasTrackingFinalizer
	})
	for _, backoff := range b.releases {
		if wait := time.Until(backoff.Until()); wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
	}
	return next
}
