package tracker

import (
	"maps"
	"math"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// forEver is a resource version after all others: a pod that is gone never comes back
// under its UID.
const forEver = math.MaxUint64

// absences are pods that are not the Job's any more. An older observation could still
// bring them back: a late response, or a watch that lags behind a response. A pod that
// comes back would count a second time and break I2.
type absences map[types.UID]absence

// absence is what is known of a pod that is not the Job's any more.
type absence struct {
	// until is the resource version up to which the absence is certain.
	until uint64
	// shown: the watch has shown the end, so only a response under way can still show
	// the pod.
	shown bool
}

// forgetShown forgets the absences that only a response under way could contradict.
func (a absences) forgetShown() {
	maps.DeleteFunc(a, func(_ types.UID, absent absence) bool { return absent.shown })
}

// PodGone records that the pod does not exist any more, and reports whether the pod was known.
func (j *Job) PodGone(uid types.UID, source Source) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dropPod(uid, forEver, source == Watch)
}

// PodLeft records that the Job does not control this version of the pod any more, and reports
// whether the tracker had the pod. A version older than the known one changes nothing.
func (j *Job) PodLeft(pod *podcache.Pod, source Source) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	rv := wire.ResourceVersion(pod.ResourceVersion)
	if r, known := j.pods.records[pod.UID]; known && rv != 0 && rv < r.rv {
		if source == Watch {
			r.seen = false // A response has shown that the Job has the pod again.
			j.pods.await(r)
		}
		return false
	}
	return j.dropPod(pod.UID, rv, source == Watch)
}

// dropPod removes a pod, and reports whether the tracker had it. shown says that the watch has
// shown its end.
func (j *Job) dropPod(uid types.UID, until uint64, shown bool) bool {
	r, known := j.pods.records[uid]
	a, marked := j.absent[uid]
	switch {
	case shown && j.calls.open == 0:
		delete(j.absent, uid) // No response is under way that could still show the pod.
	case shown || known || marked:
		j.absent[uid] = absence{until: max(a.until, until), shown: a.shown || shown}
	}
	if known {
		j.pods.forget(r)
	}
	return known
}

// SweepPods drops the awaited pods that certainly no longer belong to the Job. That is certain if
// the informer's store has reached at least the known version of the pod (watched), and the
// store's copy of the pod (stored; nil if there is none) shows that the pod is gone or that the
// Job has lost it.
//
// The event handler may be behind the store, and may still show a dropped pod. The tracker
// ignores that until the handler has shown the pod's end, or a version newer than the store's
// copy. If the handler shows neither, the tracker ignores the pod as long as the Job exists.
//
// awaiting says that pods are still awaited. After a new list, the watch may skip the versions
// in which the Job had such a pod. Then no event tells that the Job has lost the pod, and only
// another SweepPods drops it. If the Job may adopt a dropped pod again, its claims become stale.
//
// stored is called with the lock held. It must take no other lock than that of the informer's store.
func (j *Job) SweepPods(watched uint64, stored func(*podcache.Pod) *podcache.Pod) (awaiting bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for uid, r := range j.pods.awaited {
		if at := max(r.rv, r.missingAt); at == 0 || at > watched {
			continue
		}
		pod := stored(r.Pod)
		if pod == nil {
			j.dropPod(uid, forEver, false)
			continue
		}
		if lost, adoptable := j.pods.lost(r, pod); lost {
			j.dropPod(uid, wire.ResourceVersion(pod.ResourceVersion), false)
			if adoptable {
				j.version.marks |= StaleClaims
			}
		}
	}
	return len(j.pods.awaited) > 0
}
