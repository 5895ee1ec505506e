package tracker

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// NoIndex stands for a pod without a usable completion index.
const NoIndex = podcache.NoIndex

// calls are the API calls about the Job's pods that are under way.
type calls struct {
	open      int // The number of calls whose response may still arrive.
	creations map[*Creation]struct{}
	// altered are the created pods that admission has changed, and that are still to be deleted.
	altered map[types.UID]*podcache.Pod
	unseen  Unseen
}

// expected reports whether a change of a pod is likely the effect of a call under way, which
// the watch has shown before the answer came. Such a change is no reason to act, because the
// caller looks at the Job after the call.
func (c *calls) expected(known bool, before, after podfacts.Share) bool {
	if !known {
		return len(c.creations) > 0 && after.Active
	}
	released := before.Unaccounted && !after.Unaccounted
	before.Unaccounted = false
	return c.open > 0 && released && after == before
}

func (c *calls) inFlight() *jobpolicyv1.InFlight {
	if len(c.creations) == 0 {
		return nil
	}
	var indexes []int32
	for creation := range c.creations {
		if creation.index != NoIndex {
			indexes = append(indexes, creation.index)
		}
	}
	return &jobpolicyv1.InFlight{Creates: int32(len(c.creations)), CreateIndexes: podfacts.IndexSet(indexes)}
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
// Created, Altered or Refused is called or, after Unknown, until a later list has ended.
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
	if r, known := c.t.pods.records[pod.UID]; known && !r.shown {
		c.t.calls.unseen.add()
	}
	c.t.calls.end(c.t.absent)
}

// Altered ends the creation with a pod that admission has changed, so that it does not count for
// the Job. The pod is to be deleted (Tracker.Altered). owned says that the Job controls it all the
// same: whatever the watch shows of the pod is then ignored.
func (c *Creation) Altered(pod *podcache.Pod, owned bool) {
	t := c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls.creations, c)
	if t.calls.altered == nil {
		t.calls.altered = map[types.UID]*podcache.Pod{}
	}
	t.calls.altered[pod.UID] = pod
	t.calls.unseen.add()
	if owned {
		t.absent[pod.UID] = absence{until: forEver, shown: t.absent[pod.UID].shown}
		t.drop(pod.UID, forEver, false)
	}
	t.calls.end(t.absent)
}

// Altered returns the created pods that admission has changed, and that are still to be deleted.
func (t *Tracker) Altered() []*podcache.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.calls.altered))
}

// ForgetAltered records that a pod that admission has changed needs no deletion any more.
func (t *Tracker) ForgetAltered(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls.altered, uid)
}

// Refused ends the creation: there is certainly no pod.
func (c *Creation) Refused() {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	delete(c.t.calls.creations, c)
	c.t.calls.end(c.t.absent)
}

// Unknown records that the call is over and that the pod may exist or not. The creation
// stays in flight until a list that begins after this call has ended (List.End). answered says that
// the server answered with an error.
func (c *Creation) Unknown(answered bool) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.unknown = true
	if !answered {
		c.t.calls.unseen.add()
	}
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
		t.show(pod)
	}
	at := wire.ResourceVersion(resourceVersion)
	t.pods.listVersion = max(t.pods.listVersion, at)
	for uid, r := range t.pods.records {
		switch {
		case listed[uid] && r.missingAt > 0:
			t.pods.setMissing(r, 0)
		case at != 0 && r.rv <= at && !listed[uid] && !r.Stray:
			t.pods.setMissing(r, at)
		}
	}
	for _, c := range l.resolves {
		delete(t.calls.creations, c)
	}
}
