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
	// Response is the answer to a write of this process, or a live read.
	Response
)

// News is what an observation of a pod changed.
type News int

const (
	// Nothing new: the echo of an own write, or older than what is known.
	Nothing News = iota
	// Detail is how many pods are ready, something of an active pod that is read
	// only if there is another reason to act, or what a call under way was to do.
	Detail
	// AllReady: the last active pod has become ready.
	AllReady
	// Change is anything else.
	Change
)

// record is what is known of one pod.
type record struct {
	pod   *podcache.Pod
	rv    uint64
	share share
	// seen: the watch has shown the pod, so the watch will also show its end.
	seen bool
	// unlisted is the version of the last list if that did not hold the pod; 0: it did.
	unlisted uint64
	// queued: the record is in the tracker's queue.
	queued bool
	// deletedAt is set when this process has deleted the pod: from then on it
	// counts as being deleted, although no observation may say so yet.
	deletedAt time.Time
	// endSeen is when, in elapsed time, this process first knew that the pod has ended,
	// or, before that, that it is being deleted. It ended no later, whatever the clocks
	// of nodes say. ended: it was the former.
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
	// awaited holds the pods of which the watch has yet to show something: those
	// that only responses have shown, and those that a list did not hold.
	awaited map[types.UID]*record
	strays  map[types.UID]*record
	pending map[types.UID]*record // Unaccounted: finished or being deleted, and holding the finalizer.
	// queue holds the pending records in the order in which they became so, and
	// some that are not pending any more.
	queue []*record
	// gone holds pods that are not the Job's any more and that an older
	// observation could still bring back: a late response, or a watch that lags
	// behind what was learned otherwise. A pod counted a second time because of
	// that would break I2.
	gone map[types.UID]absence

	// What the pending pods add up to, so that those which a view does not list
	// need not be looked at one by one.
	pendingSucceeded        int32
	pendingNotEnded         int32
	pendingSucceededIndexes indexes
	pendingOtherIndexes     indexes

	active, ready, terminating, trackedActive int32
	restarts                                  int64
	activeIndexes, terminatingIndexes         indexes

	facts   retryFacts
	creates map[*Creation]struct{}
	calls   int // API calls whose response may still arrive.
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

// SetPolicy says how pods count. It goes through all pods once, because pods may
// be seen before their Job. What was learned without a policy is learned anew.
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

// Observe takes in a pod that is controlled by the Job, and says what changed.
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
	if t.ownDoing(known, before, r.share) {
		return Detail
	}
	return Change
}

// Keep makes the tracker hold this copy of a version that it knows: the one that
// the informer keeps in any case.
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

// ownDoing reports whether the change is likely to be what a call under way has
// done: the watch may be faster than the answer. Whoever made the call looks at
// the Job when it is over.
func (t *Tracker) ownDoing(known bool, before, after share) bool {
	if !known {
		return len(t.creates) > 0 && after.active
	}
	released := before.unaccounted && !after.unaccounted
	before.unaccounted = false
	return t.calls > 0 && released && after == before
}

// Deleted takes in that this process's deletion of the pod was accepted at the
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
