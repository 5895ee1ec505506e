package tracker

import (
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
)

// Creation is a pod creation whose outcome is not known yet. It counts as in flight until
// Created or Refused is called, or a list follows Unknown.
type Creation struct {
	t     *Tracker
	index int32
	// unsettled: the call is over and its outcome is unknown.
	unsettled bool
}

// BeginCall records that a response about the Job's pods is under way. Call EndCall once
// after the response is observed.
func (t *Tracker) BeginCall() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
}

// EndCall ends what BeginCall began.
func (t *Tracker) EndCall() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.callEnded()
}

// callEnded forgets the absences that only a response under way could contradict.
func (t *Tracker) callEnded() {
	t.calls--
	if t.calls > 0 {
		return
	}
	for uid, a := range t.gone {
		if a.settled {
			delete(t.gone, uid)
		}
	}
}

// BeginCreate records that a pod is about to be created. index is NoIndex unless the Job
// is Indexed.
func (t *Tracker) BeginCreate(index int32) *Creation {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &Creation{t: t, index: index}
	t.creates[c] = struct{}{}
	t.calls++
	return c
}

// Created ends the creation with the pod that was created.
func (c *Creation) Created(pod *podcache.Pod) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	delete(c.t.creates, c)
	c.t.observe(pod, Response)
	c.t.callEnded()
}

// Refused ends the creation: there is certainly no pod.
func (c *Creation) Refused() {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	delete(c.t.creates, c)
	c.t.callEnded()
}

// Unknown records that the call is over and that the pod may exist or not. The creation
// stays in flight until a list that begins after this call has ended (List.End).
func (c *Creation) Unknown() {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.unsettled = true
	c.t.callEnded()
}

// List is a list call for the Job's pods that is under way.
type List struct {
	t       *Tracker
	settles []*Creation
}

// Unsettled reports whether a list is needed to know the outcome of a creation.
func (t *Tracker) Unsettled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.creates {
		if c.unsettled {
			return true
		}
	}
	return false
}

// BeginList must be called before the list call: the list settles only creations that
// ended before it.
func (t *Tracker) BeginList() *List {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	l := &List{t: t}
	for c := range t.creates {
		if c.unsettled {
			l.settles = append(l.settles, c)
		}
	}
	return l
}

// Cancel ends a list that failed.
func (l *List) Cancel() { l.t.EndCall() }

// End records the pods of the list that the Job controls. A known pod that is missing in
// the list, and is not newer than the list, counts nowhere until the watch shows what
// became of it.
func (l *List) End(pods []*podcache.Pod, resourceVersion string) {
	t := l.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.callEnded()
	listed := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		listed[pod.UID] = true
		t.observe(pod, Response)
	}
	at := ResourceVersion(resourceVersion)
	for uid, r := range t.pods {
		switch {
		case listed[uid] && r.unlisted > 0:
			t.miss(r, 0)
		case at != 0 && r.rv <= at && !listed[uid] && !r.share.stray:
			t.miss(r, at)
		}
	}
	for _, c := range l.settles {
		delete(t.creates, c)
	}
}
