package tracker

import (
	"time"

	"jobpolicy.dev/executor/podcache"
)

// UnseenPeriod is how long creations count as unseen after the last one.
const UnseenPeriod = time.Hour

// UnseenPods counts the pods that were created since the watch or a list has last shown a new pod of the
// Job as the Job's own: controlled by it, selected by it and with the tracking finalizer. The answer
// to a creation shows nothing, because the pod may be changed after it, and an answer may get lost.
// A Job of any size has few such pods, and they are new: the watch shows one pod after the other. A
// creation that the server answers with an error does not count: while a webhook is away, for
// example, each may have an unknown outcome, and none makes a pod.
type UnseenPods struct {
	Pods int
	// Last is when the last of them was created, in elapsed time.
	Last time.Time
}

// add counts a pod.
func (u *UnseenPods) add() {
	*u = UnseenPods{u.now().Pods + 1, time.Now()}
}

// now returns the count, which ends UnseenPeriod after the last creation.
func (u *UnseenPods) now() UnseenPods {
	if time.Since(u.Last) >= UnseenPeriod {
		return UnseenPods{}
	}
	return *u
}

// UnseenPods returns how many pods were created without any of them being seen.
func (j *Job) UnseenPods() UnseenPods {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.calls.unseen.now()
}

// showPod records that the watch or a list shows this version of a pod. j.mu must be held.
func (j *Job) showPod(pod *podcache.Pod) {
	r, known := j.pods.records[pod.UID]
	if known && !r.shown && pod.HasTrackingFinalizer && !j.pods.policy.strays(pod) {
		r.shown = true
		j.calls.unseen = UnseenPods{}
	}
}
