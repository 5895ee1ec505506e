package tracker

import (
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// Source is where an observation of a Job or of one of its pods comes from.
type Source int

const (
	// Watch is the informer.
	Watch Source = iota
	// Response is the answer to a read from the API server, or to a write about a pod.
	Response
	// Written is the answer to a status write of this process.
	Written
)

// Change is what an observation of a Job or of one of its pods changed.
type Change int

const (
	// Unchanged: this version was known already, for example from the answer to a write, it is older
	// than the known one, or it has only what the status write under way was to change.
	Unchanged Change = iota

	// Detail of a pod: the number of ready pods, a detail of an active pod that alone is no reason
	// to act, or the expected effect of a call under way.
	Detail
	// AllReady: the last active pod that was not ready has become ready.
	AllReady
	// Relevant is anything else of a pod: a reason to reconcile the Job.
	Relevant

	// Updated are the Job's metadata or its status.
	Updated
	// SpecChanged: the Job has another generation.
	SpecChanged
	// First is the first version of the Job.
	First
)

// SetPolicy sets how the pods count. Observe does it, too, for each new spec of the Job.
func (j *Job) SetPolicy(p Policy) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pods.setPolicy(p)
}

// ObservePod records an observation of a pod that the Job controls, and returns what changed.
// If the watch shows the version that is known, its copy of the pod replaces the known one:
// the informer keeps it in any case, so there is only one copy in memory.
func (j *Job) ObservePod(pod *podcache.Pod, source Source) Change {
	j.mu.Lock()
	defer j.mu.Unlock()
	change := j.observePod(pod, source)
	if source == Watch {
		j.showPod(pod)
	}
	return change
}

func (j *Job) observePod(pod *podcache.Pod, source Source) Change {
	rv := wire.ResourceVersion(pod.ResourceVersion)
	if a, ok := j.absent[pod.UID]; ok && rv <= a.until {
		return Unchanged
	}
	delete(j.absent, pod.UID)
	r, known := j.pods.records[pod.UID]
	if source == Watch && known {
		r.seen = true
		j.pods.await(r)
	}
	if known && rv != 0 && rv <= r.rv {
		if source == Watch {
			j.pods.keep(pod)
		}
		return Unchanged
	}
	if !known {
		r = &record{seen: source == Watch}
		if !j.pods.policy.strays(pod) {
			// The last list did not hold the pod, or it would be known.
			r.missingAt = j.pods.listVersion
		}
		j.pods.records[pod.UID] = r
	}
	before := r.Share
	if known {
		j.pods.uncount(r)
	}
	r.Pod, r.rv = pod, rv
	j.pods.await(r)
	j.pods.count(r, !known)
	switch {
	case known && r.Share.Ready && !before.Ready && r.Share.SameButReadiness(before) && j.pods.counter.Totals.AllReady():
		return AllReady
	case known && r.Share.SameButReadiness(before), j.calls.expected(known, before, r.Share):
		return Detail
	default:
		return Relevant
	}
}

// PodDeleted records that the API server accepted this process's deletion of the pod.
func (j *Job) PodDeleted(uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, known := j.pods.records[uid]
	if !known || r.deleting() {
		return
	}
	j.pods.uncount(r)
	r.Deleted = true
	j.pods.count(r, false)
}
