package tracker

import (
	"math"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
)

// forEver is a resource version after all others: a pod that is gone never comes back
// under its UID.
const forEver = math.MaxUint64

// absence is what is known of a pod that is not the Job's any more.
type absence struct {
	// until is the resource version up to which the absence is certain.
	until uint64
	// settled: the watch has shown the end, so only a response under way can still
	// show the pod.
	settled bool
}

// missing reports whether a list that is newer than this version of the pod did not
// contain the pod: it is gone, or has other labels or another owner.
func (r *record) missing() bool { return r.unlisted > 0 && r.rv <= r.unlisted }

// miss records that the pod was missing in a list of this version. Until the watch shows
// what became of the pod, it counts nowhere, and its finalizer is not known to be gone.
func (t *Tracker) miss(r *record, at uint64) {
	t.unsettle(r)
	r.unlisted = at
	t.settle(r, false)
	t.await(r)
}

// await updates whether the watch is behind about the pod.
func (t *Tracker) await(r *record) {
	if r.seen && !r.missing() {
		delete(t.awaited, r.pod.UID)
		return
	}
	t.awaited[r.pod.UID] = r
}

// Gone records that the pod does not exist any more.
func (t *Tracker) Gone(uid types.UID, source Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drop(uid, forEver, source == Watch)
}

// Left records that the Job does not control this version of the pod any more.
func (t *Tracker) Left(pod *podcache.Pod, source Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	rv := ResourceVersion(pod.ResourceVersion)
	if r, known := t.pods[pod.UID]; known && rv != 0 && rv < r.rv {
		return false
	}
	return t.drop(pod.UID, rv, source == Watch)
}

// drop removes a pod. settled says that the watch has shown its end.
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

// Sweep drops the awaited pods that are certainly gone: the informer's store is complete
// up to a version after theirs (watched) and does not contain them (stored). The event
// handler may be behind the store and still show such a pod. The tracker ignores that
// until the handler has shown the pod's end. If the watch never saw the pod, the tracker
// ignores it as long as the Job exists.
//
// more says that pods are still awaited. Their end may have been between two versions
// that the watch has shown: then there is no event, and only another Sweep drops them.
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
