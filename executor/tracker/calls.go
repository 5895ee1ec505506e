package tracker

import (
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// calls are the API calls about the Job's pods that are under way.
type calls struct {
	open      int // The number of calls whose response may still arrive.
	creations map[*Creation]struct{}
}

// expected reports whether a change of a pod is likely the effect of a call under way, which
// the watch has shown before the answer came. Such a change is no reason to act, because the
// caller looks at the Job after the call.
func (c *calls) expected(known bool, before, after share) bool {
	if !known {
		return len(c.creations) > 0 && after.active
	}
	released := before.unaccounted && !after.unaccounted
	before.unaccounted = false
	return c.open > 0 && released && after == before
}

func (c *calls) inFlight() *jobpolicyv1.InFlight {
	if len(c.creations) == 0 {
		return nil
	}
	var set indexes
	for creation := range c.creations {
		if creation.index != NoIndex {
			set.add(creation.index)
		}
	}
	return &jobpolicyv1.InFlight{Creates: int32(len(c.creations)), CreateIndexes: set.set()}
}

// unknown returns the creations whose call is over and whose outcome is unknown.
func (c *calls) unknown() (out []*Creation) {
	for creation := range c.creations {
		if creation.unknown {
			out = append(out, creation)
		}
	}
	return out
}

// Creation is a pod creation whose outcome is not known yet. It counts as in flight until
// Created or Refused is called or, after Unknown, until a later list has ended.
type Creation struct {
	t     *Tracker
	index int32
	// unknown: the call is over and its outcome is unknown.
	unknown bool
}

// BeginCall records that a call about the Job's pods begins. Call end once, after the
// response is observed.
func (t *Tracker) BeginCall() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls.open++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.calls.end(t.absent)
	}
}

// end ends a call. After the last one, no response can contradict an absence any more.
func (c *calls) end(absent absences) {
	c.open--
	if c.open == 0 {
		absent.forgetShown()
	}
}

// BeginCreate records that a pod is about to be created. index is NoIndex unless the Job
// is Indexed.
func (t *Tracker) BeginCreate(index int32) *Creation {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &Creation{t: t, index: index}
	t.calls.creations[c] = struct{}{}
	t.calls.open++
	return c
}

// Created ends the creation with the pod that was created.
func (c *Creation) Created(pod *podcache.Pod) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	delete(c.t.calls.creations, c)
	c.t.observe(pod, Response)
	c.t.calls.end(c.t.absent)
}

// Refused ends the creation: there is certainly no pod.
func (c *Creation) Refused() {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	delete(c.t.calls.creations, c)
	c.t.calls.end(c.t.absent)
}

// Unknown records that the call is over and that the pod may exist or not. The creation
// stays in flight until a list that begins after this call has ended (List.End).
func (c *Creation) Unknown() {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.unknown = true
	c.t.calls.end(c.t.absent)
}

// NeedsList reports whether only a list can tell the outcome of a creation.
func (t *Tracker) NeedsList() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls.unknown()) > 0
}

// List is a list call for the Job's pods that is under way.
type List struct {
	t *Tracker
	// resolves are the creations whose outcome the list tells.
	resolves []*Creation
}

// BeginList must be called before the list call: the list tells the outcome only of
// creations that ended before it.
func (t *Tracker) BeginList() *List {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls.open++
	return &List{t: t, resolves: t.calls.unknown()}
}

// Cancel ends a list that failed.
func (l *List) Cancel() {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	l.t.calls.end(l.t.absent)
}

// End records the pods of the list that the Job controls. A known pod that the list lacks
// counts nowhere until the watch shows what became of it, unless its version is newer than
// the list. The same holds for a pod that the watch first shows after the list; see observe.
func (l *List) End(pods []*podcache.Pod, resourceVersion string) {
	t := l.t
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.calls.end(t.absent) }() // Until then, absences keep out pods that the list shows and the watch has shown to be gone.
	listed := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		listed[pod.UID] = true
		t.observe(pod, Response)
	}
	at := wire.ResourceVersion(resourceVersion)
	t.pods.listVersion = max(t.pods.listVersion, at)
	for uid, r := range t.pods.records {
		switch {
		case listed[uid] && r.missingAt > 0:
			t.pods.setMissing(r, 0)
		case at != 0 && r.rv <= at && !listed[uid] && !r.share.stray:
			t.pods.setMissing(r, at)
		}
	}
	for _, c := range l.resolves {
		delete(t.calls.creations, c)
	}
}
