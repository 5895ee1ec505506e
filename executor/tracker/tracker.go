package tracker

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// Source is where an observation of a pod comes from.
type Source int

const (
	// Watch is the informer.
	Watch Source = iota
	// Response is the answer to a write of this process or to a read from the API server.
	Response
)

// Change is what an observation of a pod changed.
type Change int

const (
	// Unchanged: this version was known already, for example from the answer to a write, or
	// it is older than the known one.
	Unchanged Change = iota
	// Detail: the number of ready pods, a detail of an active pod that alone is no reason
	// to act, or the expected effect of a call under way.
	Detail
	// AllReady: the last active pod that was not ready has become ready.
	AllReady
	// Relevant is anything else: a reason to reconcile the Job.
	Relevant
)

// Tracker holds the facts about the pods of one Job. It is safe for use by many
// goroutines.
//
// The parts have no lock of their own. Every exported method of Tracker, Creation and List
// holds mu from its first line to its last, and so does the function that BeginCall returns.
// Nothing else takes it.
type Tracker struct {
	mu     sync.Mutex
	pods   pods
	absent absences
	calls  calls
}

// New returns a tracker of a Job without pods.
func New() *Tracker {
	return &Tracker{
		pods:   newPods(),
		absent: absences{},
		calls:  calls{creations: map[*Creation]struct{}{}},
	}
}

// SetPolicy sets how pods count.
func (t *Tracker) SetPolicy(p Policy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pods.setPolicy(p)
}

// Observe records an observation of a pod that the Job controls, and returns what changed.
// If the watch shows the version that is known, its copy of the pod replaces the tracker's:
// the informer keeps it in any case, so there is only one copy in memory.
func (t *Tracker) Observe(pod *podcache.Pod, source Source) Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	change := t.observe(pod, source)
	if source == Watch {
		t.show(pod)
	}
	return change
}

func (t *Tracker) observe(pod *podcache.Pod, source Source) Change {
	rv := wire.ResourceVersion(pod.ResourceVersion)
	if a, ok := t.absent[pod.UID]; ok && rv <= a.until {
		return Unchanged
	}
	delete(t.absent, pod.UID)
	r, known := t.pods.records[pod.UID]
	if source == Watch && known {
		r.seen = true
		t.pods.await(r)
	}
	if known && rv != 0 && rv <= r.rv {
		if source == Watch {
			t.pods.keep(pod)
		}
		return Unchanged
	}
	if !known {
		r = &record{seen: source == Watch}
		if !t.pods.policy.strays(pod) {
			// The last list did not hold the pod, or it would be known.
			r.missingAt = t.pods.listVersion
		}
		t.pods.records[pod.UID] = r
	}
	before := r.Share
	if known {
		t.pods.uncount(r)
	}
	r.Pod, r.rv = pod, rv
	t.pods.await(r)
	t.pods.count(r, !known)
	switch {
	case known && r.Share.Ready && !before.Ready && r.Share.SameButReadiness(before) && t.pods.counter.Totals.AllReady():
		return AllReady
	case known && r.Share.SameButReadiness(before), t.calls.expected(known, before, r.Share):
		return Detail
	default:
		return Relevant
	}
}

// Deleted records that the API server accepted this process's deletion of the pod.
func (t *Tracker) Deleted(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, known := t.pods.records[uid]
	if !known || r.deleting() {
		return
	}
	t.pods.uncount(r)
	r.Deleted = true
	t.pods.count(r, false)
}
