package executor

import (
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/events"
	"jobpolicy.dev/executor/limit"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
)

// jobState is everything that is remembered about one Job UID.
type jobState struct {
	uid       types.UID
	namespace string
	pods      *tracker.Tracker

	mu sync.Mutex
	// job is the newest version seen; nil while only its pods are known, and
	// again after it is deleted. Never changed in place.
	job      *batchv1.Job
	rv       uint64
	selector labels.Selector
	// writing is the status of a write under way, to tell its echo from a write
	// by somebody else.
	writing *batchv1.JobStatus
	// unanswered are status writes of which it is not known yet whether they took
	// effect; told is the last version of which a replacement was announced; final
	// is the last version of a Job that was deleted while a write was under way.
	unanswered []*announcement
	told       uint64
	final      *batchv1.Job
	// gone: the Job is certain not to exist any more. foreign: the built-in
	// controller, which runs beside this executor, cleans up after it.
	gone, foreign bool

	// What has to be done before the next decision.
	claimDue, readDue, listDue bool

	// engineAway: the last round failed because the engine did not answer.
	engineAway   bool
	retriedEarly time.Time // When the engine's return last ended the back-off.
	// createHold and deleteHold hold pods back from being created or deleted after
	// that has failed; what else there is to do goes on.
	createHold, deleteHold hold
	// releaseHolds hold single pods back from being released.
	releaseHolds map[types.UID]hold
	// namespaceGoing: the API server has refused a pod because the namespace is
	// being deleted. The Job goes with it, but only when its pods are gone.
	namespaceGoing bool

	wakeCause string
	wokenAt   time.Time
	atWork    bool // A round is running.
	urgent    bool // The batch period does not apply to the next round.
	lazy      bool // Nothing but a routine status is due.
	lastRound time.Time
	notBefore time.Time
	// planned is when a round is due even if no event comes; zero: never.
	planned time.Time
	// seen is when the first version of the Job was seen.
	seen time.Time
	// statusDue is when the next routine status may be written that records finished
	// pods. One that only counts waits half a period more: the next pod to finish
	// may bring its own.
	statusDue time.Time
	failures  int
	sequence  uint64
	// rejected is the generation that the engine refused; told once.
	rejected int64
	// maxRows is how many pods are listed at most, because the engine refused a
	// message with more at cutAt; 0: it did not.
	maxRows int
	cutAt   time.Time
	last    *decisionRecord
	// podEvents are the events about pods that there may still be.
	podEvents events.Allowance

	creating, patching, deleting *limit.Limiter
}

// observation says what a newly seen version of a Job changed.
type observation struct {
	news, first, specChanged bool
	job                      *batchv1.Job
}

// jobSource is where a version of a Job comes from.
type jobSource int

const (
	jobWatched jobSource = iota
	jobRead
	jobWritten // The answer to an own status write.
)

// observe takes in a version of the Job. Versions that are not newer than what is
// known change nothing.
func (s *jobState) observe(job *batchv1.Job, source jobSource) observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	rv := tracker.ResourceVersion(job.ResourceVersion)
	if s.gone || (s.job != nil && rv != 0 && rv <= s.rv) {
		if source == jobWatched && !s.gone && rv == s.rv {
			s.job = job // The informer keeps this copy in any case.
		}
		return observation{job: s.job}
	}
	o := observation{news: !s.writingThat(job), first: s.job == nil, job: job}
	if o.first {
		s.adopt(job)
	} else {
		if countsOtherwise(job, s.job) {
			s.pods.SetPolicy(podPolicy(job))
		}
		o.specChanged = job.Generation != s.job.Generation
		expected := source == jobWritten || sameLedger(&job.Status, &s.job.Status) || (s.writing != nil && sameLedger(&job.Status, s.writing))
		// Somebody else keeps this Job's books. What is known of its pods may be
		// older than what they have counted already.
		s.listDue = s.listDue || !expected
	}
	s.job, s.rv = job, rv
	return o
}

// writingThat reports whether the version is what a status write under way makes.
func (s *jobState) writingThat(job *batchv1.Job) bool {
	return s.writing != nil && s.job != nil && job.Generation == s.job.Generation && api.SameStatus(&job.Status, s.writing)
}

// adopt sets what a Job's first version tells. Its selector never changes.
func (s *jobState) adopt(job *batchv1.Job) {
	s.seen = time.Now()
	s.selector, _ = selectorOf(job)
	s.claimDue = true
	s.pods.SetPolicy(podPolicy(job))
}

// selectorOf returns the Job's selector. ok is false if there is none to speak
// of; the one returned then selects nothing.
func selectorOf(job *batchv1.Job) (selector labels.Selector, ok bool) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return labels.Nothing(), false
	}
	return selector, job.Spec.Selector != nil
}

// countsOtherwise reports whether podPolicy differs between two versions of a Job.
// Of what it is made of, the API server lets podReplacementPolicy be changed, and
// completions of an Indexed Job.
func countsOtherwise(a, b *batchv1.Job) bool {
	return wire.ReplacesFailedOnly(a) != wire.ReplacesFailedOnly(b) || ptr.Deref(a.Spec.Completions, 0) != ptr.Deref(b.Spec.Completions, 0)
}

// podPolicy is how the Job's pods count.
func podPolicy(job *batchv1.Job) tracker.Policy {
	policy := tracker.Policy{
		Indexed:           wire.Indexed(job),
		LimitedPerIndex:   job.Spec.BackoffLimitPerIndex != nil,
		Completions:       ptr.Deref(job.Spec.Completions, 0),
		ReplaceFailedOnly: wire.ReplacesFailedOnly(job),
		Failures:          job.Spec.PodFailurePolicy,
	}
	if selector, ok := selectorOf(job); ok {
		policy.Matches = func(pod *podcache.Pod) bool { return selector.Matches(pod.Labels) }
	}
	return policy
}

// sameLedger reports whether two statuses account for the same pods.
func sameLedger(a, b *batchv1.JobStatus) bool {
	return a.Succeeded == b.Succeeded && a.Failed == b.Failed && a.CompletedIndexes == b.CompletedIndexes &&
		sameUncounted(a.UncountedTerminatedPods, b.UncountedTerminatedPods)
}

func sameUncounted(a, b *batchv1.UncountedTerminatedPods) bool {
	if a == nil {
		a = &batchv1.UncountedTerminatedPods{}
	}
	if b == nil {
		b = &batchv1.UncountedTerminatedPods{}
	}
	return slices.Equal(a.Succeeded, b.Succeeded) && slices.Equal(a.Failed, b.Failed)
}

func emptyLedger(s *batchv1.JobStatus) bool {
	return sameLedger(s, &batchv1.JobStatus{})
}

// current returns the newest version of the Job, or nil.
func (s *jobState) current() *batchv1.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.job
}

// deleted takes in that the Job does not exist any more. final is its last version.
func (s *jobState) deleted(final *batchv1.Job, foreign bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing != nil && final != nil {
		s.final = final
	}
	s.job, s.gone, s.foreign, s.last = nil, true, foreign, nil
}

func (s *jobState) matches(pod *podcache.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.job != nil && s.selector.Matches(pod.Labels)
}

func (s *jobState) due(claim, read, list bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimDue = s.claimDue || claim
	s.readDue = s.readDue || read
	s.listDue = s.listDue || list
}
