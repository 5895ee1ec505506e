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
	unseen  UnseenPods
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
	j     *Job
	index int32
	// unknown: the call is over and its outcome is unknown.
	unknown bool
}

// BeginCall records that a call about the Job's pods begins. Call end once, after the
// response is observed.
func (j *Job) BeginCall() (end func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls.open++
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.calls.end(j.absent)
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
func (j *Job) BeginCreate(index int32) *Creation {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &Creation{j: j, index: index}
	j.calls.creations[c] = struct{}{}
	j.calls.open++
	return c
}

// Created ends the creation with the pod that was created.
func (c *Creation) Created(pod *podcache.Pod) {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	delete(c.j.calls.creations, c)
	c.j.observePod(pod, Response)
	if r, known := c.j.pods.records[pod.UID]; known && !r.shown {
		c.j.calls.unseen.add()
	}
	c.j.calls.end(c.j.absent)
}

// Altered ends the creation with a pod that admission has changed, so that it does not count for
// the Job. The pod is to be deleted (AlteredPods). owned says that the Job controls it all the
// same: whatever the watch shows of the pod is then ignored.
func (c *Creation) Altered(pod *podcache.Pod, owned bool) {
	j := c.j
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.calls.creations, c)
	if j.calls.altered == nil {
		j.calls.altered = map[types.UID]*podcache.Pod{}
	}
	j.calls.altered[pod.UID] = pod
	j.calls.unseen.add()
	if owned {
		j.absent[pod.UID] = absence{until: forEver, shown: j.absent[pod.UID].shown}
		j.dropPod(pod.UID, forEver, false)
	}
	j.calls.end(j.absent)
}

// AlteredPods returns the created pods that admission has changed, and that are still to be deleted.
func (j *Job) AlteredPods() []*podcache.Pod {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Values(j.calls.altered))
}

// ForgetAltered records that a pod that admission has changed needs no deletion any more.
func (j *Job) ForgetAltered(uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.calls.altered, uid)
}

// Refused ends the creation: there is certainly no pod.
func (c *Creation) Refused() {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	delete(c.j.calls.creations, c)
	c.j.calls.end(c.j.absent)
}

// Unknown records that the call is over and that the pod may exist or not. The creation
// stays in flight until a list that begins after this call has ended (List.End). answered says that
// the server answered with an error.
func (c *Creation) Unknown(answered bool) {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	c.unknown = true
	if !answered {
		c.j.calls.unseen.add()
	}
	c.j.calls.end(c.j.absent)
}

// NeedsList reports whether only a list can tell the outcome of a creation.
func (j *Job) NeedsList() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.calls.unknown()) > 0
}

// List is a list call for the Job's pods that is under way.
type List struct {
	j *Job
	// resolves are the creations whose outcome the list tells.
	resolves []*Creation
}

// BeginList must be called before the list call: the list tells the outcome only of
// creations that ended before it.
func (j *Job) BeginList() *List {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls.open++
	return &List{j: j, resolves: j.calls.unknown()}
}

// Cancel ends a list that failed.
func (l *List) Cancel() {
	l.j.mu.Lock()
	defer l.j.mu.Unlock()
	l.j.calls.end(l.j.absent)
}

// End records the pods of the list that the Job controls. A known pod that the list lacks
// counts nowhere until the watch shows what became of it, unless its version is newer than
// the list. The same holds for a pod that the watch first shows after the list; see observePod.
func (l *List) End(pods []*podcache.Pod, resourceVersion string) {
	j := l.j
	j.mu.Lock()
	defer j.mu.Unlock()
	defer func() { j.calls.end(j.absent) }() // Until then, absences keep out pods that the list shows and the watch has shown to be gone.
	listed := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		listed[pod.UID] = true
		j.observePod(pod, Response)
		j.showPod(pod)
	}
	at := wire.ResourceVersion(resourceVersion)
	j.pods.listVersion = max(j.pods.listVersion, at)
	for uid, r := range j.pods.records {
		switch {
		case listed[uid] && r.missingAt > 0:
			j.pods.setMissing(r, 0)
		case at != 0 && r.rv <= at && !listed[uid] && !r.Stray:
			j.pods.setMissing(r, at)
		}
	}
	for _, c := range l.resolves {
		delete(j.calls.creations, c)
	}
}
