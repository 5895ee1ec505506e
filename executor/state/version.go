package state

import (
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
)

// Lifecycle is what is known of a Job's existence.
type Lifecycle int

const (
	// Unseen: only pods that refer to the Job are known.
	Unseen Lifecycle = iota
	// Exists: the Job was seen and its deletion was not.
	Exists
	// Gone: the Job does not exist any more, and the executor releases its pods.
	Gone
	// GoneUnmanaged: the Job does not exist any more, and the built-in controller, which
	// runs beside the executor, releases its pods.
	GoneUnmanaged
)

// Marks are what is known of a Job beside its versions.
type Marks uint8

const (
	// StaleJob: the cached Job may be old. It has to be read from the API server.
	StaleJob Marks = 1 << iota
	// StalePods: what is known of the pods may be older than the Job's status. They have
	// to be listed.
	StalePods
	// StaleClaims: there may be pods to adopt.
	StaleClaims
	// UnverifiedPods: what is known of the pods was read before this process led. They have
	// to be listed before a decision that does something is applied, unless the cache has
	// caught up.
	UnverifiedPods
	// NotFound: the API server has said that the Job does not exist. The watch has yet to show
	// that. No other Job will ever have its UID.
	NotFound
	// NamespaceTerminating: the API server has refused a pod because the namespace is being
	// deleted. The Job is deleted with it, but only after its pods.
	NamespaceTerminating
)

// Version is the newest version of a Job that was seen.
type Version struct {
	mu sync.Mutex
	// job is never changed in place. It is nil unless lifecycle is Exists.
	job       *batchv1.Job
	lifecycle Lifecycle
	selector  labels.Selector
	marks     Marks
	firstSeen time.Time
	// seenSuspended: a version that was seen is suspended.
	seenSuspended bool
	// expected is the status of the write under way, to tell its effect from a write by
	// another client.
	expected *batchv1.JobStatus
	// final is the last version of a Job that was deleted while a write was under way.
	final *batchv1.Job
}

// Change says what a newly seen version of a Job changed.
type Change int

const (
	// Unchanged: nothing, or only what the status write under way was to change.
	Unchanged Change = iota
	// Updated: its metadata or its status.
	Updated
	// SpecChanged: its generation.
	SpecChanged
	// First: it is the first version.
	First
)

// Source is where a version of a Job comes from.
type Source int

const (
	// Watch is the informer.
	Watch Source = iota
	// Read is a read from the API server.
	Read
	// Written is the answer to a status write of this process.
	Written
)

// Observe records a version of the Job, unless it is known or older than the known one, and
// returns what has changed.
func (s *Job) Observe(job *batchv1.Job, source Source) Change {
	v := &s.Version
	v.mu.Lock()
	defer v.mu.Unlock()
	rv := wire.ResourceVersion(job.ResourceVersion)
	known := v.job != nil && rv != 0
	if v.gone() || (known && rv <= wire.ResourceVersion(v.job.ResourceVersion)) {
		if source == Watch && known && rv == wire.ResourceVersion(v.job.ResourceVersion) {
			v.job = job // The informer keeps this copy in any case, so only one is in memory.
		}
		return Unchanged
	}
	c := v.changeTo(job)
	v.seenSuspended = v.seenSuspended || ptr.Deref(job.Spec.Suspend, false)
	if c == SpecChanged {
		s.Backoffs.SpecChanged()
		s.Refusals.Over(writes.CreatePod, writes.DeletePod)
	}
	if c == First || c == SpecChanged {
		s.Tracker.SetPolicy(PodPolicy(job))
	}
	if c == First {
		v.first(job)
	} else {
		own := source == Written || sameLedger(&job.Status, &v.job.Status) || (v.expected != nil && sameLedger(&job.Status, v.expected))
		if !own {
			// Another client writes this Job's status, too. It may have counted pods
			// that are not known here.
			v.marks |= StalePods
		}
	}
	v.job = job
	return c
}

// gone reports whether the Job does not exist any more; v.mu must be held.
func (v *Version) gone() bool { return v.lifecycle == Gone || v.lifecycle == GoneUnmanaged }

// changeTo says what a newer version changes; v.mu must be held.
func (v *Version) changeTo(job *batchv1.Job) Change {
	switch {
	case v.job == nil:
		return First
	case job.Generation != v.job.Generation:
		return SpecChanged
	case v.expected != nil && wire.SameStatus(&job.Status, v.expected):
		return Unchanged
	default:
		return Updated
	}
}

// first records the first version of a Job. The selector never changes after that.
func (v *Version) first(job *batchv1.Job) {
	v.lifecycle, v.firstSeen = Exists, time.Now()
	v.selector, _ = selectorOf(job)
	v.marks |= StaleClaims
}

// Current returns the newest version of the Job; nil if it is not known to exist.
func (v *Version) Current() *batchv1.Job {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.job
}

// Lifecycle returns what is known of the Job's existence.
func (v *Version) Lifecycle() Lifecycle {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lifecycle
}

// Last returns the newest version; nil if there is none. Unlike Current, it also returns
// the last version of a Job that was deleted while a write was under way.
func (v *Version) Last() *batchv1.Job {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.job == nil {
		return v.final
	}
	return v.job
}

// FirstSeen is when the first version was seen.
func (v *Version) FirstSeen() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.firstSeen
}

// SeenSuspended reports whether any version that was seen is suspended.
func (v *Version) SeenSuspended() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seenSuspended
}

// Gone records that the Job does not exist any more. final is its last version. managed says
// whether this executor releases its pods.
func (s *Job) Gone(final *batchv1.Job, managed bool) {
	v := &s.Version
	v.mu.Lock()
	if v.expected != nil {
		v.final = final
	}
	v.job, v.lifecycle = nil, Gone
	if !managed {
		v.lifecycle = GoneUnmanaged
	}
	v.mu.Unlock()
	s.Decisions.close()
}

// Matches reports whether the Job exists and its selector matches the pod.
func (v *Version) Matches(pod *podcache.Pod) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.job != nil && v.selector.Matches(pod.Labels)
}

// Expect sets the status of the write under way; nil: no write is under way.
func (v *Version) Expect(status *batchv1.JobStatus) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expected = status
}

// Mark sets marks.
func (v *Version) Mark(marks Marks) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.marks |= marks
}

// Clear removes marks, and reports whether any of them was set.
func (v *Version) Clear(marks Marks) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.marks&marks != 0
	v.marks &^= marks
	return was
}

// Has reports whether any of the marks is set.
func (v *Version) Has(marks Marks) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.marks&marks != 0
}

// MustRefresh reports whether something has to be read or adopted before the next decision.
// A Job that is being deleted adopts no pods.
func (v *Version) MustRefresh() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	claims := v.marks&StaleClaims != 0 && v.job != nil && v.job.DeletionTimestamp == nil
	return claims || v.marks&(StaleJob|StalePods) != 0
}

// selectorOf returns the Job's selector. ok is false if the Job has none or an invalid
// one; the returned selector then selects nothing.
func selectorOf(job *batchv1.Job) (selector labels.Selector, ok bool) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return labels.Nothing(), false
	}
	return selector, job.Spec.Selector != nil
}

// PodPolicy returns what the Job's spec says about how its pods count.
func PodPolicy(job *batchv1.Job) tracker.Policy {
	policy := tracker.Policy{Policy: wire.PodPolicy(job)}
	if selector, ok := selectorOf(job); ok {
		policy.Matches = func(pod *podcache.Pod) bool { return selector.Matches(pod.Labels) }
	}
	return policy
}

// sameLedger reports whether two statuses account for the same pods.
func sameLedger(a, b *batchv1.JobStatus) bool {
	none := batchv1.UncountedTerminatedPods{}
	return a.Succeeded == b.Succeeded && a.Failed == b.Failed && a.CompletedIndexes == b.CompletedIndexes &&
		sameUncounted(ptr.Deref(a.UncountedTerminatedPods, none), ptr.Deref(b.UncountedTerminatedPods, none))
}

func sameUncounted(a, b batchv1.UncountedTerminatedPods) bool {
	return slices.Equal(a.Succeeded, b.Succeeded) && slices.Equal(a.Failed, b.Failed)
}

// EmptyLedger reports whether a status accounts for no pods.
func EmptyLedger(s *batchv1.JobStatus) bool { return sameLedger(s, &batchv1.JobStatus{}) }
