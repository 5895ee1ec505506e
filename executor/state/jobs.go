package state

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/limit"
	"jobpolicy.dev/executor/podcache"
)

// Jobs are the known Jobs by UID (invariant I8).
type Jobs struct {
	writes      *limit.Pool
	mu          sync.RWMutex
	byUID       map[types.UID]*Job
	byNamespace map[string]map[types.UID]*Job
}

// NewJobs returns Jobs whose writes the pool bounds.
func NewJobs(writes *limit.Pool) *Jobs {
	return &Jobs{writes: writes, byUID: map[types.UID]*Job{}, byNamespace: map[string]map[types.UID]*Job{}}
}

// Find returns a known Job.
func (j *Jobs) Find(uid types.UID) (*Job, bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, ok := j.byUID[uid]
	return s, ok
}

// Namespace is the namespace of a known Job; "" if the Job is not known.
func (j *Jobs) Namespace(uid types.UID) string {
	if s, ok := j.Find(uid); ok {
		return s.Namespace
	}
	return ""
}

// With calls f with the Job of the UID. It adds the Job if it is not known. The Job is not
// dropped before f returns.
func (j *Jobs) With(namespace string, uid types.UID, f func(*Job)) *Job {
	if s, ok := j.withKnown(uid, f); ok {
		return s
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s, ok := j.byUID[uid]
	if !ok {
		s = New(namespace, uid, j.writes)
		j.byUID[uid] = s
		if j.byNamespace[namespace] == nil {
			j.byNamespace[namespace] = map[types.UID]*Job{}
		}
		j.byNamespace[namespace][uid] = s
	}
	f(s)
	return s
}

// withKnown is With for a known Job. It takes only the read lock, so that events of other
// Jobs do not wait.
func (j *Jobs) withKnown(uid types.UID, f func(*Job)) (*Job, bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, ok := j.byUID[uid]
	if ok {
		f(s)
	}
	return s, ok
}

// DropUnused forgets a Job that is not known to exist and has no pods.
func (j *Jobs) DropUnused(namespace string, uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, ok := j.byUID[uid]
	if !ok || s.Version.Current() != nil || s.Tracker.Len() > 0 {
		return
	}
	delete(j.byUID, uid)
	delete(j.byNamespace[namespace], uid)
	if len(j.byNamespace[namespace]) == 0 {
		delete(j.byNamespace, namespace)
	}
}

// Selecting returns the existing Jobs of the namespace whose selector matches the pod.
func (j *Jobs) Selecting(pod *podcache.Pod) []*Job {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var out []*Job
	for _, s := range j.byNamespace[pod.Namespace()] {
		if s.Version.Matches(pod) {
			out = append(out, s)
		}
	}
	return out
}

// All returns all Jobs.
func (j *Jobs) All() []*Job {
	j.mu.RLock()
	defer j.mu.RUnlock()
	out := make([]*Job, 0, len(j.byUID))
	for _, s := range j.byUID {
		out = append(out, s)
	}
	return out
}
