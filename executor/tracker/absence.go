package tracker

import (
	"math"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/leanpods"
)

// absence is what is known of a pod that is not the Job's any more.
type absence struct {
	// until is the resource version up to which that is certain.
	until uint64
	// settled: the watch has shown the end, so only responses under way can be
	// older than it.
	settled bool
}

// Gone takes in that the pod does not exist any more.
func (t *Tracker) Gone(uid types.UID, source Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drop(uid, math.MaxUint64, source == Watch)
}

// Left takes in that the pod, seen at this version, is not controlled by the
// Job any more.
func (t *Tracker) Left(pod *leanpods.Pod, source Source) bool {
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
	delete(t.unseen, uid)
	return true
}

// Sweep drops pods that only own responses have shown and that the watch has
// passed over: they came and went while it was interrupted. watched is the
// version up to which the informer's store is complete; stored reports whether
// the store holds the pod.
func (t *Tracker) Sweep(watched uint64, stored func(*leanpods.Pod) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, r := range t.unseen {
		if r.rv != 0 && r.rv <= watched && !stored(r.pod) {
			t.drop(uid, math.MaxUint64, true)
		}
	}
}
