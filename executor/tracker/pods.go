package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/podfacts"
)

// Policy is the part of the Job's spec that the tracker needs.
type Policy struct {
	podfacts.Policy
	// Matches is the Job's selector; nil matches every pod. A pod of the Job that does
	// not match is a stray: it counts nowhere and is disowned.
	Matches func(*podcache.Pod) bool
}

// strays reports whether the Job's selector does not match a pod.
func (p *Policy) strays(pod *podcache.Pod) bool {
	return p.Matches != nil && !p.Matches(pod)
}

// record is what is known of one pod.
type record struct {
	podfacts.Counted[*podcache.Pod]
	rv uint64
	// missingAt is the version of the last list if the pod was not in it; 0: it was, or
	// there was none.
	missingAt uint64
	// seen: the watch shows the pod as the Job's, so it will also show its end.
	seen bool
	// shown: the watch or a list has shown the pod as the Job's own; see UnseenPods.
	shown bool
	// ended: EndSeen is when the pod was seen to have ended, not to be deleted.
	ended bool
}

func (r *record) deleting() bool { return r.Pod.Deleting || r.Deleted }

// missing reports whether a list that is newer than this version of the pod did not
// contain the pod: it is gone, or has other labels or another owner.
func (r *record) missing() bool { return r.missingAt > 0 && r.rv <= r.missingAt }

// pods are the pods of the Job, with sums and sets over them. These always agree with the
// records: whoever changes a record calls uncount before and count after.
type pods struct {
	policy      Policy
	policyKnown bool // setPolicy was called.

	records map[types.UID]*record
	// listVersion is the version of the newest list; 0: none yet. The watch may still show older
	// versions of pods that were gone by then, for example pods that another replica created
	// and released.
	listVersion uint64
	// awaited are the pods about which the watch is behind: those that only responses
	// have shown, and those that were missing in a list.
	awaited map[types.UID]*record
	strays  map[types.UID]*record

	counter    *podfacts.Counter[*podcache.Pod]
	hindrances hindrances
}

func newPods() pods {
	return pods{
		records: map[types.UID]*record{}, awaited: map[types.UID]*record{}, strays: map[types.UID]*record{},
		counter: podfacts.New(podfacts.Policy{}, wire.PodFacts),
	}
}

// setPolicy sets how pods count, and counts all of them again, because pods may be seen
// before their Job. Retry facts that were learned without a policy are learned again. The policy that
// is set already changes nothing; a Job's selector never changes.
func (p *pods) setPolicy(policy Policy) {
	policy.Starts = p.policy.Starts
	switch {
	case !p.policyKnown:
		p.counter.ForgetRetry()
	case p.policy.Same(policy.Policy):
		return
	}
	p.policy, p.policyKnown = policy, true
	p.recount()
}

// tellStarts sets whether requests say what keeps pods from starting. It costs O(pods) if that changes, which
// it does when the options of the Job do.
func (p *pods) tellStarts(starts bool) {
	if p.policy.Starts != starts {
		p.policy.Starts = starts
		p.recount()
	}
}

// recount counts all pods by the policy.
func (p *pods) recount() {
	p.counter.SetPolicy(p.policy.Policy)
	for _, r := range p.records {
		p.uncount(r)
		p.count(r, true)
	}
}

// count adds a record to the sums and sets. first says that the pod was not known before.
func (p *pods) count(r *record, first bool) {
	r.Stray, r.Missing = p.policy.strays(r.Pod), r.missing()
	if ended := r.Pod.Ended(); (ended && !r.ended) || (r.EndSeen.IsZero() && r.Pod.Deleting) {
		r.EndSeen, r.ended = time.Now(), ended
	}
	p.counter.Add(&r.Counted, first)
	p.hindrances.add(r, 1)
	if r.Stray {
		p.strays[r.Pod.UID] = r
	}
}

// uncount takes a record out of the sums and sets. Retry facts stay.
func (p *pods) uncount(r *record) {
	p.counter.Remove(&r.Counted)
	p.hindrances.add(r, -1)
	delete(p.strays, r.Pod.UID)
}

// keep replaces the copy of a pod by this one if both have the same version.
func (p *pods) keep(pod *podcache.Pod) {
	if r, known := p.records[pod.UID]; known && pod.ResourceVersion == r.Pod.ResourceVersion {
		r.Pod = pod
	}
}

// await adds the pod to the awaited ones if the watch is behind about it. Otherwise it removes
// the pod from them.
func (p *pods) await(r *record) {
	if r.seen && !r.missing() {
		delete(p.awaited, r.Pod.UID)
		return
	}
	p.awaited[r.Pod.UID] = r
}

// lost reports whether the Job does not control this version of the pod any more, and whether
// it may adopt it again: nothing controls it, and the Job's selector matches it.
func (p *pods) lost(r *record, now *podcache.Pod) (lost, adoptable bool) {
	before, _ := r.Pod.Controller()
	after, controlled := now.Controller()
	if controlled {
		return after.UID != before.UID, false
	}
	return true, !p.policy.strays(now)
}

// setMissing records that a list of this version did not contain the pod; 0: the newest list
// contains it. A missing pod counts nowhere until the watch shows what became of it, and its
// finalizer is not known to be gone. If the pod failed, the retry delay still depends on that.
func (p *pods) setMissing(r *record, at uint64) {
	p.uncount(r)
	r.missingAt = at
	p.count(r, false)
	p.await(r)
}

// forget removes a record.
func (p *pods) forget(r *record) {
	p.uncount(r)
	p.counter.Tidy()
	delete(p.records, r.Pod.UID)
	delete(p.awaited, r.Pod.UID)
}
