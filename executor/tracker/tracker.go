package tracker

import (
	"math"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/leanpods"
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

// Policy is what the tracker must know of the Job's spec.
type Policy struct {
	// Indexed: pods have a completion index.
	Indexed bool
	// Completions is how many indexes an Indexed Job asks for. A pod of another
	// index says nothing about when to try again.
	Completions int32
	// ReplaceFailedOnly: a pod that is being deleted has not failed before it
	// ends.
	ReplaceFailedOnly bool
	// Failures is the Job's pod failure policy, which reads how a pod failed; nil
	// if it has none.
	Failures *batchv1.PodFailurePolicy
	// Matches is the Job's selector; nil matches every pod. A pod of the Job
	// that it does not match is a stray: it is to be released and counts nowhere.
	Matches func(*leanpods.Pod) bool
}

// share is a pod's share in the Job's counts.
type share struct {
	active, ready, terminating, trackedActive, unaccounted, stray bool

	index    int32
	restarts int64
}

// actsAs reports whether nothing but the number of ready pods follows from the
// difference. Of a pod that is unaccounted for, every detail counts.
func (s share) actsAs(before share) bool {
	before.ready = s.ready
	return s == before && !s.unaccounted
}

// record is what is known of one pod.
type record struct {
	pod   *leanpods.Pod
	rv    uint64
	share share
	// seen: the watch has shown the pod, so the watch will also show its end.
	seen bool
	// queued: the record is in the tracker's queue.
	queued bool
	// deletedAt is set when this process has deleted the pod: from then on it
	// counts as being deleted, although no observation may say so yet.
	deletedAt time.Time
}

func (r *record) deleting() bool { return r.pod.Deleting || !r.deletedAt.IsZero() }

// absence is what is known of a pod that is not the Job's any more.
type absence struct {
	// until is the resource version up to which that is certain.
	until uint64
	// settled: the watch has shown the end, so only responses under way can be
	// older than it.
	settled bool
}

// staleQueue is how much of the queue may be stale however short it is.
const staleQueue = 16

// Tracker holds the facts about the pods of one Job. It is safe for use by
// many goroutines.
type Tracker struct {
	mu      sync.Mutex
	policy  Policy
	told    bool // SetPolicy was called.
	pods    map[types.UID]*record
	unseen  map[types.UID]*record
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

	active, ready, terminating, trackedActive int32
	restarts                                  int64
	activeIndexes, terminatingIndexes         indexes

	facts   retryFacts
	creates map[*Creation]struct{}
	calls   int // API calls whose response may still arrive.

	observed, written uint64
}

// New returns a tracker of a Job without pods.
func New() *Tracker {
	return &Tracker{
		pods:    map[types.UID]*record{},
		unseen:  map[types.UID]*record{},
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
func (t *Tracker) Observe(pod *leanpods.Pod, source Source) News {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.observe(pod, source)
}

func (t *Tracker) observe(pod *leanpods.Pod, source Source) News {
	rv := ResourceVersion(pod.ResourceVersion)
	t.note(rv, source)
	if a, ok := t.gone[pod.UID]; ok && (rv <= a.until || a.until == math.MaxUint64) {
		return Nothing
	}
	delete(t.gone, pod.UID)
	r, known := t.pods[pod.UID]
	if source == Watch && known {
		r.seen = true
		delete(t.unseen, pod.UID)
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
	if !r.seen {
		t.unseen[pod.UID] = r
	}
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
func (t *Tracker) Keep(pod *leanpods.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(pod)
}

func (t *Tracker) keep(pod *leanpods.Pod) {
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

func (t *Tracker) note(rv uint64, source Source) {
	t.observed = max(t.observed, rv)
	if source == Response {
		t.written = max(t.written, rv)
	}
}

// Gone takes in that the pod does not exist any more.
func (t *Tracker) Gone(uid types.UID, source Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drop(uid, math.MaxUint64, source == Watch)
}

// Left takes in that the pod, seen at this version, is not controlled by the
// Job any more.
func (t *Tracker) Left(pod *leanpods.Pod, source Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	rv := ResourceVersion(pod.ResourceVersion)
	if r, known := t.pods[pod.UID]; known && rv != 0 && rv < r.rv {
		return false
	}
	return t.drop(pod.UID, rv, source == Watch)
}

// drop removes a pod. settled says that the watch has shown it.
func (t *Tracker) drop(uid types.UID, until uint64, settled bool) bool {
	r, known := t.pods[uid]
	a, marked := t.gone[uid]
	switch {
	case settled && t.calls == 0:
		delete(t.gone, uid)
	case settled || known || marked:
		t.gone[uid] = absence{until: max(a.until, until), settled: a.settled || settled}
	}
	if !known {
		return false
	}
	t.unsettle(r)
	t.tidyQueue()
	delete(t.pods, uid)
	delete(t.unseen, uid)
	return true
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

// Sweep drops pods that only own responses have shown and that the watch has
// passed over: they came and went while it was interrupted. watched is the
// version up to which the informer's store is complete; stored reports whether
// the store holds the pod.
func (t *Tracker) Sweep(watched uint64, stored func(*leanpods.Pod) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, r := range t.unseen {
		if r.rv != 0 && r.rv <= watched && !stored(r.pod) {
			t.drop(uid, math.MaxUint64, true)
		}
	}
}

// settle works out a record's share and adds it. first says that nothing was
// known of the pod before.
func (t *Tracker) settle(r *record, first bool) {
	r.share = t.shareOf(r)
	t.count(&r.share, 1)
	if r.share.stray {
		t.strays[r.pod.UID] = r
		return
	}
	if r.share.unaccounted {
		t.pending[r.pod.UID] = r
		t.countPending(r, 1)
		t.enqueue(r)
	}
	t.learn(r, first)
}

func (t *Tracker) unsettle(r *record) {
	t.count(&r.share, -1)
	if _, pending := t.pending[r.pod.UID]; pending {
		t.countPending(r, -1)
		delete(t.pending, r.pod.UID)
	}
	delete(t.strays, r.pod.UID)
}

// enqueue puts a record at the end of the queue, unless it has a place.
func (t *Tracker) enqueue(r *record) {
	if r.queued {
		return
	}
	r.queued = true
	t.queue = append(t.queue, r)
}

// tidyQueue drops what is not pending any more: what stands in front, and all of it
// once that is most of the queue.
func (t *Tracker) tidyQueue() {
	for len(t.queue) > 0 && !t.isPending(t.queue[0]) {
		t.queue[0].queued = false
		t.queue[0] = nil
		t.queue = t.queue[1:]
	}
	if len(t.queue) <= 2*len(t.pending)+staleQueue {
		return
	}
	t.queue = slices.DeleteFunc(t.queue, func(r *record) bool {
		r.queued = t.isPending(r)
		return !r.queued
	})
}

func (t *Tracker) isPending(r *record) bool { return t.pending[r.pod.UID] == r }

func (t *Tracker) shareOf(r *record) share {
	if t.policy.Matches != nil && !t.policy.Matches(r.pod) {
		return share{stray: true, index: NoIndex}
	}
	ended, deleting, held := r.pod.Ended(), r.deleting(), r.pod.Held
	s := share{
		active:      !ended && !deleting,
		terminating: !ended && deleting,
		unaccounted: held && (ended || deleting),
		index:       NoIndex,
		restarts:    r.pod.Restarts,
	}
	s.ready = s.active && r.pod.Ready
	s.trackedActive = s.active && held
	if t.policy.Indexed {
		s.index = r.pod.Index
	}
	return s
}

func (t *Tracker) count(s *share, sign int32) {
	t.restarts += int64(sign) * s.restarts
	countIf(&t.active, s.active, sign)
	countIf(&t.ready, s.ready, sign)
	countIf(&t.terminating, s.terminating, sign)
	countIf(&t.trackedActive, s.trackedActive, sign)
	if s.index == NoIndex {
		return
	}
	if s.active {
		t.activeIndexes.change(s.index, sign)
	}
	if s.terminating {
		t.terminatingIndexes.change(s.index, sign)
	}
}

func (t *Tracker) countPending(r *record, sign int32) {
	countIf(&t.pendingNotEnded, !r.pod.Ended(), sign)
	if r.pod.Phase() != corev1.PodSucceeded {
		return
	}
	t.pendingSucceeded += sign
	if r.share.index != NoIndex {
		t.pendingSucceededIndexes.change(r.share.index, sign)
	}
}

func countIf(n *int32, condition bool, sign int32) {
	if condition {
		*n += sign
	}
}

func (s *indexes) change(ix, sign int32) {
	if sign > 0 {
		s.add(ix)
		return
	}
	s.remove(ix)
}

// learn takes a finished pod into the retry facts. A pod counts if it ended
// while it held the finalizer; a pod that has lost it before this process knew
// it counts if it ended by itself. A deletion that releases the pod first is no
// failure.
func (t *Tracker) learn(r *record, first bool) {
	held := r.pod.Held
	byItself := first && r.pod.Ended() && !r.pod.Deleting
	if !held && !byItself {
		return
	}
	if t.policy.Indexed && (r.share.index == NoIndex || r.share.index >= t.policy.Completions) {
		return
	}
	at := finishedTime(r.pod, r.deletedAt)
	if r.pod.Phase() == corev1.PodSucceeded {
		t.facts.succeeded(at)
		return
	}
	if !r.pod.Ended() && (t.policy.ReplaceFailedOnly || !r.deleting()) {
		return
	}
	fact := failure{uid: r.pod.UID, finished: at}
	if t.policy.Failures != nil {
		fact.details = podFailure(r.pod, t.policy.Failures)
	}
	t.facts.failed(fact)
}
