package tracker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
)

// Source is where an observation of a pod comes from.
type Source int

const (
	// Watch is the informer.
	Watch Source = iota
	// Response is the answer to a write of this process or to a read from the API server.
	Response
)

// News is what an observation of a pod changed.
type News int

const (
	// Nothing new: the echo of a write of this process, or older than what is known.
	Nothing News = iota
	// Detail: the number of ready pods, a detail of an active pod that alone is no reason
	// to act, or the expected effect of a call under way.
	Detail
	// AllReady: the last active pod that was not ready has become ready.
	AllReady
	// Change is anything else.
	Change
)

// record is what is known of one pod.
type record struct {
	pod   *podcache.Pod
	rv    uint64
	share share
	// seen: the watch has shown the pod, so it will also show its end.
	seen bool
	// unlisted is the version of the last list if the pod was not in it; 0: it was.
	unlisted uint64
	// queued: the record is in the tracker's queue.
	queued bool
	// deletedAt is when this process deleted the pod. From then on the pod counts as
	// being deleted, even before an observation says so.
	deletedAt time.Time
	// endSeen is when, in elapsed time, this process first saw that the pod has ended
	// (ended is true) or is being deleted (ended is false). The pod ended no later,
	// whatever the clocks of nodes say.
	endSeen time.Time
	ended   bool
}

func (r *record) deleting() bool { return r.pod.Deleting || !r.deletedAt.IsZero() }

// Tracker holds the facts about the pods of one Job. It is safe for use by
// many goroutines.
type Tracker struct {
	mu     sync.Mutex
	policy Policy
	told   bool // SetPolicy was called.
	pods   map[types.UID]*record
	// awaited are the pods about which the watch is behind: those that only responses
	// have shown, and those that were missing in a list.
	awaited map[types.UID]*record
	strays  map[types.UID]*record
	pending map[types.UID]*record // Unaccounted: finished or being deleted, with the finalizer.
	// queue holds the pending records in the order in which they became pending, and
	// some that are not pending any more.
	queue []*record
	// gone are pods that are not the Job's any more. An older observation could still
	// bring them back: a late response, or a watch that lags behind a response. A pod
	// that comes back would count a second time and break I2.
	gone map[types.UID]absence

	// Sums over the pending pods, so that a view need not go through the pods that it
	// does not list.
	pendingSucceeded        int32
	pendingNotEnded         int32
	pendingSucceededIndexes indexes
	pendingOtherIndexes     indexes

	active, ready, terminating, trackedActive int32
	restarts                                  int64
	activeIndexes, terminatingIndexes         indexes

	facts   retryFacts
	creates map[*Creation]struct{}
	calls   int // The number of API calls whose response may still arrive.
}

// New returns a tracker of a Job without pods.
func New() *Tracker {
	return &Tracker{
		pods:    map[types.UID]*record{},
		awaited: map[types.UID]*record{},
		strays:  map[types.UID]*record{},
		pending: map[types.UID]*record{},
		gone:    map[types.UID]absence{},
		creates: map[*Creation]struct{}{},
	}
}

// SetPolicy sets how pods count, and counts all pods again, because pods may be seen
// before their Job. Retry facts that were learned without a policy are learned again.
func (t *Tracker) SetPolicy(p Policy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.told {
		t.facts = retryFacts{}
	}
	t.policy, t.told = p, true
	for _, r := range t.pods {
		t.unsettle(r)
		t.settle(r, true)
	}
}

// Observe records an observation of a pod that the Job controls, and returns what changed.
func (t *Tracker) Observe(pod *podcache.Pod, source Source) News {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.observe(pod, source)
}

func (t *Tracker) observe(pod *podcache.Pod, source Source) News {
	rv := ResourceVersion(pod.ResourceVersion)
	if a, ok := t.gone[pod.UID]; ok && rv <= a.until {
		return Nothing
	}
	delete(t.gone, pod.UID)
	r, known := t.pods[pod.UID]
	if source == Watch && known {
		r.seen = true
		t.await(r)
	}
	if known && rv != 0 && rv <= r.rv {
		if source == Watch {
			t.keep(pod)
		}
		return Nothing
	}
	if !known {
		r = &record{seen: source == Watch}
		t.pods[pod.UID] = r
	}
	before := r.share
	if known {
		t.unsettle(r)
	}
	r.pod, r.rv = pod, rv
	t.await(r)
	t.settle(r, !known)
	if known && r.share.actsAs(before) {
		if r.share.ready && !before.ready && t.ready == t.active {
			return AllReady
		}
		return Detail
	}
	if t.isExpected(known, before, r.share) {
		return Detail
	}
	return Change
}

// Keep replaces the tracker's copy of a version by this copy, which the informer keeps in
// any case. So there is only one copy in memory.
func (t *Tracker) Keep(pod *podcache.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(pod)
}

func (t *Tracker) keep(pod *podcache.Pod) {
	if r, known := t.pods[pod.UID]; known && pod.ResourceVersion == r.pod.ResourceVersion {
		r.pod = pod
	}
}

// isExpected reports whether the change is likely the effect of a call under way: the
// watch may be faster than the answer. The caller looks at the Job after the call.
func (t *Tracker) isExpected(known bool, before, after share) bool {
	if !known {
		return len(t.creates) > 0 && after.active
	}
	released := before.unaccounted && !after.unaccounted
	before.unaccounted = false
	return t.calls > 0 && released && after == before
}

// Deleted records that the API server accepted this process's deletion of the pod at the
// given time.
func (t *Tracker) Deleted(uid types.UID, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, known := t.pods[uid]
	if !known || r.deleting() {
		return
	}
	t.unsettle(r)
	r.deletedAt = at
	t.settle(r, false)
}
