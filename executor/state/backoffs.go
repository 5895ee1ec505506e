package state

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/backoff"
	"jobpolicy.dev/executor/tracker"
)

// Step is a step of a decision that has a backoff of its own. So finished pods are counted
// and released even while a quota is exhausted or a webhook refuses new pods.
type Step int

const (
	// Create is the creation of pods.
	Create Step = iota
	// Delete is the deletion of pods.
	Delete
	steps
)

// Backoffs are the backoffs of a Job's steps and of the releases of single pods.
type Backoffs struct {
	mu       sync.Mutex
	steps    [steps]backoff.Backoff
	refusal  Refusal
	releases map[types.UID]*release
}

// A release is the backoff of the release of one pod.
type release struct {
	backoff.Backoff
	// skipped: since the last call of UntilNextRelease, MayRelease has skipped the pod, because
	// its delay had not ended.
	skipped bool
}

// A Refusal is why the API server did not create the Job's pods, and when, in wall time.
type Refusal struct {
	At  time.Time
	Why string
	// Reason is the reason of the event that says it. Empty: FailedCreate.
	Reason string
}

// Refused records why pods were not created.
func (b *Backoffs) Refused(r Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusal = r
}

// Refusal returns the last refusal; zero after a Reset of Create.
func (b *Backoffs) Refusal() Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal
}

// Failed starts the next delay of a step and returns it.
func (b *Backoffs) Failed(step Step, limits backoff.Limits) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.steps[step].Failed(limits)
}

// Reset ends the delay of a step: part of the step has succeeded, or a pod has ended and
// made room for a new one.
func (b *Backoffs) Reset(step Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps[step].Reset()
	if step == Create {
		b.refusal = Refusal{}
	}
}

// Until is when the last delay of a step ends or has ended; zero if there was none.
func (b *Backoffs) Until(step Step) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.steps[step].Until()
}

// ReleaseFailed starts the next delay of a pod's release and returns it.
func (b *Backoffs) ReleaseFailed(pod types.UID, limits backoff.Limits) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.releases == nil {
		b.releases = map[types.UID]*release{}
	}
	if b.releases[pod] == nil {
		b.releases[pod] = &release{}
	}
	return b.releases[pod].Failed(limits)
}

// MayRelease reports whether the pod may be released now: its release is not backing off.
func (b *Backoffs) MayRelease(pod types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.releases[pod]
	if r == nil || !r.Active() {
		return true
	}
	r.skipped = true
	return false
}

// UntilNextRelease is how long until the first delay of a release ends; 0 if no delay runs. If
// MayRelease has skipped a pod since the last call, and the pod's delay has ended, it returns
// 1 ns: try again at once. It forgets the delays of pods that do not have the tracking finalizer
// any more.
func (b *Backoffs) UntilNextRelease(pods *tracker.Tracker) (next time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.releases, func(uid types.UID, _ *release) bool {
		pod, known := pods.Pod(uid)
		return !known || !pod.HasTrackingFinalizer
	})
	for _, r := range b.releases {
		wait := time.Until(r.Until())
		if r.skipped {
			wait = max(wait, 1)
		}
		r.skipped = false
		if wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
	}
	return next
}
