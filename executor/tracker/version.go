package tracker

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/podcache"
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

// version is the newest version of a Job that was seen.
type version struct {
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

// Observe records a version of the Job, unless it is known or older than the known one, and
// returns what has changed.
func (j *Job) Observe(job *batchv1.Job, source Source) Change {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := &j.version
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
		j.backoffs.steps = [steps]clock.Backoff{} // What the API server refused may not be asked for any more.
		j.Refusals.Over(writes.CreatePod, writes.DeletePod, writes.EndPod)
	}
	if c == First || c == SpecChanged {
		j.pods.setPolicy(PodPolicy(job))
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

// gone reports whether the Job does not exist any more.
func (v *version) gone() bool { return v.lifecycle == Gone || v.lifecycle == GoneUnmanaged }

// changeTo says what a newer version changes.
func (v *version) changeTo(job *batchv1.Job) Change {
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
func (v *version) first(job *batchv1.Job) {
	v.lifecycle, v.firstSeen = Exists, time.Now()
	v.selector, _ = selectorOf(job)
	v.marks |= StaleClaims
}

// Current returns the newest version of the Job; nil if it is not known to exist.
func (j *Job) Current() *batchv1.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.version.job
}

// Lifecycle returns what is known of the Job's existence.
func (j *Job) Lifecycle() Lifecycle {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.version.lifecycle
}

// LastVersion returns the newest version; nil if there is none. Unlike Current, it also returns
// the last version of a Job that was deleted while a write was under way.
func (j *Job) LastVersion() *batchv1.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.version.job == nil {
		return j.version.final
	}
	return j.version.job
}

// FirstSeen is when the first version was seen.
func (j *Job) FirstSeen() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.version.firstSeen
}

// SeenSuspended reports whether any version that was seen is suspended.
func (j *Job) SeenSuspended() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.version.seenSuspended
}

// Gone records that the Job does not exist any more. final is its last version. managed says
// whether this executor releases its pods.
func (j *Job) Gone(final *batchv1.Job, managed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := &j.version
	if v.expected != nil {
		v.final = final
	}
	v.job, v.lifecycle = nil, Gone
	if !managed {
		v.lifecycle = GoneUnmanaged
	}
	j.decisions.last = nil
}

// Matches reports whether the Job exists and its selector matches the pod.
func (j *Job) Matches(pod *podcache.Pod) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.version.job != nil && j.version.selector.Matches(pod.Labels)
}

// Expect sets the status of the write under way; nil: no write is under way.
func (j *Job) Expect(status *batchv1.JobStatus) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.version.expected = status
}

// Mark sets marks.
func (j *Job) Mark(marks Marks) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.version.marks |= marks
}

// Clear removes marks, and reports whether any of them was set.
func (j *Job) Clear(marks Marks) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.version.marks&marks != 0
	j.version.marks &^= marks
	return was
}

// Has reports whether any of the marks is set.
func (j *Job) Has(marks Marks) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.version.marks&marks != 0
}

// MustRefresh reports whether something has to be read or adopted before the next decision.
// A Job that is being deleted adopts no pods.
func (j *Job) MustRefresh() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	claims := j.version.marks&StaleClaims != 0 && j.version.job != nil && j.version.job.DeletionTimestamp == nil
	return claims || j.version.marks&(StaleJob|StalePods) != 0
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
func PodPolicy(job *batchv1.Job) Policy {
	policy := Policy{Policy: wire.PodPolicy(job)}
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
