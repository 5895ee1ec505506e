package executor

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/limit"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
)

// jobs are the Jobs known, by UID (invariant I8). Names are for look-ups only.
type jobs struct {
	writes      *limit.Pool
	mu          sync.RWMutex
	byUID       map[types.UID]*jobState
	byNamespace map[string]map[types.UID]*jobState
}

func newJobs(writes *limit.Pool) *jobs {
	return &jobs{writes: writes, byUID: map[types.UID]*jobState{}, byNamespace: map[string]map[types.UID]*jobState{}}
}

func newJobState(namespace string, uid types.UID, writes *limit.Pool) *jobState {
	return &jobState{
		uid: uid, namespace: namespace, pods: tracker.New(),
		creating: writes.SlowStart(namespace, uid), patching: writes.Limiter(namespace, uid), deleting: writes.Limiter(namespace, uid),
	}
}

func (j *jobs) find(uid types.UID) (*jobState, bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, ok := j.byUID[uid]
	return s, ok
}

// namespace is that of a known Job.
func (j *jobs) namespace(uid types.UID) string {
	if s, ok := j.find(uid); ok {
		return s.namespace
	}
	return ""
}

// with calls f with the state of the UID, made if need be, such that the state
// is not dropped meanwhile.
func (j *jobs) with(namespace string, uid types.UID, f func(*jobState)) *jobState {
	if s, ok := j.withKnown(uid, f); ok {
		return s
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s, ok := j.byUID[uid]
	if !ok {
		s = newJobState(namespace, uid, j.writes)
		j.byUID[uid] = s
		if j.byNamespace[namespace] == nil {
			j.byNamespace[namespace] = map[types.UID]*jobState{}
		}
		j.byNamespace[namespace][uid] = s
	}
	f(s)
	return s
}

// withKnown is with for a state that exists. It does not keep other Jobs' events
// waiting for this one's.
func (j *jobs) withKnown(uid types.UID, f func(*jobState)) (*jobState, bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, ok := j.byUID[uid]
	if ok {
		f(s)
	}
	return s, ok
}

// dropUnused forgets a Job that is not known to exist and has no pods.
func (j *jobs) dropUnused(namespace string, uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, ok := j.byUID[uid]
	if !ok || s.current() != nil || s.pods.Len() > 0 {
		return
	}
	delete(j.byUID, uid)
	delete(j.byNamespace[namespace], uid)
	if len(j.byNamespace[namespace]) == 0 {
		delete(j.byNamespace, namespace)
	}
}

// selecting returns the existing Jobs of the namespace whose selector matches
// the pod.
func (j *jobs) selecting(pod *podcache.Pod) []*jobState {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var out []*jobState
	for _, s := range j.byNamespace[pod.Namespace()] {
		if s.matches(pod) {
			out = append(out, s)
		}
	}
	return out
}

func (j *jobs) all() []*jobState {
	j.mu.RLock()
	defer j.mu.RUnlock()
	out := make([]*jobState, 0, len(j.byUID))
	for _, s := range j.byUID {
		out = append(out, s)
	}
	return out
}
