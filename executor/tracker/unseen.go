package tracker

import (
	"time"

	"jobpolicy.dev/executor/podcache"
)

// UnseenPeriod is how long creations count as unseen after the last one.
const UnseenPeriod = time.Hour

// Unseen counts the pods that were created since the watch or a list has last shown a new pod of the
// Job as the Job's own: controlled by it, selected by it and with the tracking finalizer. The answer
// to a creation shows nothing, because the pod may be changed after it, and an answer may get lost.
// A Job of any size has few such pods, and they are new: the watch shows one pod after the other. A
// creation that the server answers with an error does not count: while a webhook is away, for
// example, each may have an unknown outcome, and none makes a pod.
type Unseen struct {
	Pods int
	// Last is when the last of them was created, in elapsed time.
	Last time.Time
}

// add counts a pod.
func (u *Unseen) add() {
	*u = Unseen{u.now().Pods + 1, time.Now()}
}

// now returns the count, which ends UnseenPeriod after the last creation.
func (u *Unseen) now() Unseen {
	if time.Since(u.Last) >= UnseenPeriod {
		return Unseen{}
	}
	return *u
}

// Unseen returns how many pods were created without any of them being seen.
func (t *Tracker) Unseen() Unseen {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls.unseen.now()
}

// show records that the watch or a list shows this version of a pod. t.mu must be held.
func (t *Tracker) show(pod *podcache.Pod) {
	r, known := t.pods.records[pod.UID]
	if known && !r.shown && pod.HasTrackingFinalizer && !t.pods.policy.strays(pod) {
		r.shown = true
		t.calls.unseen = Unseen{}
	}
}
