package tracker

import (
	"math"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
)

// forEver is a resource version after all others: a pod that does not exist any
// more never comes back under its UID.
const forEver = math.MaxUint64

// absence is what is known of a pod that is not the Job's any more.
type absence struct {
	// until is the resource version up to which that is certain.
	until uint64
	// settled: the watch has shown the end, so only responses under way can be
	// older than it.
	settled bool
}

// missing reports whether a list that was made after this version of the pod did
// not hold it: the pod is gone, or had other labels or another owner by then.
func (r *record) missing() bool { return r.unlisted > 0 && r.rv <= r.unlisted }

// miss takes in that a list of this version did not hold the pod. What became of
// it, the watch will show; until then it counts nowhere, and a finalizer that it
// held is not known to be gone.
func (t *Tracker) miss(r *record, at uint64) {
	t.unsettle(r)
	r.unlisted = at
	t.settle(r, false)
	t.await(r)
}

// await notes whether the watch has yet to show what there is of the pod.
func (t *Tracker) await(r *record) {
	if r.seen && !r.missing() {
		delete(t.awaited, r.pod.UID)
		return
	}
	t.awaited[r.pod.UID] = r
}

// Gone takes in that the pod does not exist any more.
func (t *Tracker) Gone(uid types.UID, source Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drop(uid, forEver, source == Watch)
}

// Left takes in that the pod, seen at this version, is not controlled by the
// Job any more.
func (t *Tracker) Left(pod *podcache.Pod, source Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	rv := ResourceVersion(pod.ResourceVersion)
	if r, known := t.pods[pod.UID]; known && rv != 0 && rv < r.rv {
		return false
	}
	return t.drop(pod.UID, rv, source == Watch)
}

// drop removes a pod. settled says that the watch has shown it.
func (t *Tracker) drop(uid types.UID, until uint64, settled bool) bool {
	r, known := t.pods[uid]
	a, marked := t.gone[uid]
	switch {
	case settled && t.calls == 0:
		delete(t.gone, uid)
	case settled || known || marked:
		t.gone[uid] = absence{until: max(a.until, until), settled: a.settled || settled}
	}
	if !known {
		return false
	}
	t.unsettle(r)
	t.tidyQueue()
	delete(t.pods, uid)
	delete(t.awaited, uid)
	return true
}

// Sweep drops pods that only own responses have shown, or that a list did not
// hold, if the watch has passed them over: they are gone. watched is the version
// up to which the informer's store is complete; stored reports whether the store
// holds the pod. The handler may be behind the store, so it may still show such a
// pod; its absence is certain until the handler has shown its end, or for as long
// as the Job is there if the watch never saw the pod.
//
// It returns whether the watch has yet to show something. If the watch missed
// what became of that, no event will tell, but another Sweep.
func (t *Tracker) Sweep(watched uint64, stored func(*podcache.Pod) bool) (more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, r := range t.awaited {
		if at := max(r.rv, r.unlisted); at != 0 && at <= watched && !stored(r.pod) {
			t.drop(uid, forEver, false)
		}
	}
	return len(t.awaited) > 0
}
