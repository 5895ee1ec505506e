package tracker

import (
	"maps"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/podcache"
)

// Key identifies a Job by its UID (invariant I8), in the namespace of the Job. An owner
// reference means an object in the same namespace, and anybody may write any UID there. So a
// pod belongs to a Job only if it is in the Job's namespace.
type Key struct {
	Namespace string
	UID       types.UID
}

// KeyOf returns the key of a Job.
func KeyOf(job *batchv1.Job) Key { return Key{job.Namespace, job.UID} }

// KeyOfOwner returns the key of the Job that a pod's owner reference names.
func KeyOfOwner(pod *podcache.Pod, owner *podcache.Owner) Key {
	return Key{pod.Namespace(), owner.UID}
}

// Jobs are the known Jobs.
type Jobs struct {
	writes      *limit.Pool
	mu          sync.RWMutex
	byNamespace map[string]map[types.UID]*Job
}

// NewJobs returns Jobs whose writes the pool bounds.
func NewJobs(writes *limit.Pool) *Jobs {
	return &Jobs{writes: writes, byNamespace: map[string]map[types.UID]*Job{}}
}

// Find returns a known Job; false if it is not known.
func (j *Jobs) Find(key Key) (*Job, bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, ok := j.byNamespace[key.Namespace][key.UID]
	return s, ok
}

// Controlling returns the known Job that controls the pod; false if there is none.
func (j *Jobs) Controlling(pod *podcache.Pod) (*Job, bool) {
	ref, _ := pod.ControllingJob()
	if ref == nil {
		return nil, false
	}
	return j.Find(KeyOfOwner(pod, ref))
}

// Existing returns the Job of this UID that exists, in whatever namespace; false if there is
// none.
func (j *Jobs) Existing(uid types.UID) (*Job, bool) {
	for _, s := range j.ofUID(uid) {
		if s.Current() != nil {
			return s, true
		}
	}
	return nil, false
}

// ofUID are the known Jobs of this UID, of each namespace at most one. Whoever asks a Job takes its lock, and may have
// to wait for it; nobody else has to wait meanwhile, because mu is not held.
func (j *Jobs) ofUID(uid types.UID) (found []*Job) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, jobs := range j.byNamespace {
		if s, ok := jobs[uid]; ok {
			found = append(found, s)
		}
	}
	return found
}

// With calls f with the Job of the key. It adds the Job if it is not known. The Job is not
// dropped before f returns.
func (j *Jobs) With(key Key, f func(*Job)) *Job {
	if s, ok := j.withKnown(key, f); ok {
		return s
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	jobs := j.byNamespace[key.Namespace]
	if jobs == nil {
		jobs = map[types.UID]*Job{}
		j.byNamespace[key.Namespace] = jobs
	}
	s, ok := jobs[key.UID]
	if !ok {
		s = New(key, j.writes)
		jobs[key.UID] = s
	}
	f(s)
	return s
}

// withKnown is With for a known Job. It takes only the read lock, so that events of other
// Jobs do not wait.
func (j *Jobs) withKnown(key Key, f func(*Job)) (*Job, bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, ok := j.byNamespace[key.Namespace][key.UID]
	if ok {
		f(s)
	}
	return s, ok
}

// DropUnused forgets a Job that is not known to exist and has no pods.
func (j *Jobs) DropUnused(key Key) {
	// Most Jobs are used. To find that out takes only the Job's lock, which a large Job may hold for a while.
	if s, ok := j.Find(key); !ok || !s.unused() {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	jobs := j.byNamespace[key.Namespace]
	s, ok := jobs[key.UID]
	if !ok || !s.unused() {
		return
	}
	delete(jobs, key.UID)
	if len(jobs) == 0 {
		delete(j.byNamespace, key.Namespace)
	}
}

// unused reports whether the Job is not known to exist and has no pods.
func (j *Job) unused() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.version.job == nil && len(j.pods.records) == 0
}

// Selecting returns the existing Jobs of the namespace whose selector matches the pod, ordered by UID.
func (j *Jobs) Selecting(pod *podcache.Pod) []*Job {
	var out []*Job
	for _, s := range j.in(pod.Namespace()) {
		if s.Matches(pod) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *Job) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return out
}

// in are the known Jobs of a namespace.
func (j *Jobs) in(namespace string) []*Job {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return slices.Collect(maps.Values(j.byNamespace[namespace]))
}

// All returns all Jobs.
func (j *Jobs) All() []*Job {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var out []*Job
	for _, jobs := range j.byNamespace {
		out = slices.AppendSeq(out, maps.Values(jobs))
	}
	return out
}
