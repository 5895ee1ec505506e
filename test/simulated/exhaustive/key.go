package exhaustive

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sort"

	"jobpolicy.dev/test/kit/ledger"
)

// A keeper makes the keys of states: 64 bits of a hash of all that what may still happen depends on. Resource versions
// become their order, and pods that differ only in their numbers are exchanged: what concerns a pod is written down for
// each pod alone, and then sorted. The engine lists pods in the order of their UIDs, so of two such pods only one is
// the first in a list. Executors are exchanged, too: all run the same code, and nothing tells whose a write was.
type keeper struct {
	seed maphash.Seed
	// apart: pods are not exchanged.
	apart bool
	// plain: executors are not exchanged, and faults that cannot come any more tell states apart.
	plain      bool
	buf, other []byte
	pod        [maxPods][]byte
}

// A horizon is the oldest version of the Job and the oldest event that any executor has yet to learn.
type horizon struct {
	*world
	jobs, events int
}

func (w *world) horizon() horizon {
	h := horizon{w, len(w.jobs) - 1, len(w.events)}
	for _, x := range w.executors[:w.scope.Executors] {
		h.jobs, h.events = min(h.jobs, x.jobs), min(h.events, x.pods)
		if x.tracker.job != nil {
			h.jobs = min(h.jobs, x.tracker.job.at)
		}
		if c := x.call; c != nil {
			h.include(c)
		}
		if len(x.todo) > 0 {
			for i := range x.todo {
				h.include(&x.todo[i])
			}
		}
	}
	return h
}

func (h *horizon) include(c *call) {
	for _, v := range []*jobVersion{c.base, c.job} {
		if v != nil {
			h.jobs = min(h.jobs, v.at)
		}
	}
	if c.pod != nil {
		h.events = min(h.events, c.pod.at)
	}
	if c.kind == callList && c.outcome != pending {
		h.events = min(h.events, h.eventsUntil(c.rv))
	}
}

// eventsUntil is how many events of pods there were at a version.
func (w *world) eventsUntil(rv uint64) int {
	return sort.Search(len(w.events), func(i int) bool { return w.events[i].rv > rv })
}

// ago is how many events back a place is; all places before the horizon are alike.
func (h horizon) ago(at int) byte { return byte(len(h.world.events) - max(at, h.events-1)) }

// since is ago for a version.
func (h horizon) since(rv uint64) byte {
	if rv == 0 {
		return 254
	}
	return byte(len(h.world.events) - max(h.eventsUntil(rv), h.events))
}

func bits(all ...bool) (b byte) {
	for i, is := range all {
		if is {
			b |= 1 << i
		}
	}
	return b
}

// of is the key of a world: of the two orders of its executors, the one whose text comes first has it.
func (k *keeper) of(w *world) uint64 {
	h := w.horizon()
	executors := w.executors
	k.buf = k.write(k.buf[:0], h, executors[:w.scope.Executors])
	if w.scope.Executors == maxExecutors && !k.plain {
		slices.Reverse(executors[:])
		k.other = k.write(k.other[:0], h, executors[:])
		if bytes.Compare(k.other, k.buf) < 0 {
			return maphash.Bytes(k.seed, k.other)
		}
	}
	return maphash.Bytes(k.seed, k.buf)
}

// write is all that the key depends on.
func (k *keeper) write(b []byte, h horizon, executors []*executor) []byte {
	left := h.left
	if !k.plain {
		left = h.usable()
	}
	b = append(b, byte(left.losses), byte(left.crashes), byte(left.deletions), byte(left.failures), byte(left.toggles), bits(left.jobDeletion))
	for _, v := range h.world.jobs[h.jobs:] {
		b = append(append(b, v.text...), 0)
	}
	for n := range k.pod {
		k.pod[n] = h.aPod(k.pod[n][:0], n)
	}
	for _, x := range executors {
		b = h.anExecutor(b, x)
		for n := range k.pod {
			k.pod[n] = h.podOf(k.pod[n], n, x)
		}
	}
	pods := k.pod
	if !k.apart {
		slices.SortFunc(pods[:], bytes.Compare)
	}
	for _, p := range pods {
		b = append(append(b, byte(len(p)), byte(len(p)>>8)), p...)
	}
	return b
}

// usable is what is left of the faults that moves may still have: what can happen to no pod and no Job any more makes no
// difference.
func (w *world) usable() left {
	usable := w.left
	if w.free() >= w.scope.Pods {
		usable.failures, usable.deletions = 0, 0
		for _, v := range w.cluster.pods {
			if v.exists() && !v.ended() {
				usable.failures = w.left.failures
			}
			if v.exists() && !v.deleting {
				usable.deletions = w.left.deletions
			}
		}
	}
	if job := w.job(); job == nil || ledger.IsFinished(job) {
		usable.toggles, usable.jobDeletion = 0, false
	}
	return usable
}

// aPod is what is stored of a pod, and where versions of the Job list it.
func (h horizon) aPod(b []byte, n int) []byte {
	v := h.cluster.pods[n]
	if v == nil {
		return b
	}
	b = append(append(b, v.text...), bits(h.counted[n], h.dropped[n]))
	for i, e := range h.world.events[h.events:] {
		if e.n == n {
			b = append(append(b, byte(i)), e.text...)
		}
	}
	for _, j := range h.world.jobs[h.jobs:] {
		b = append(b, byte(j.place[n]))
	}
	return b
}

// podOf is what an executor knows of a pod, and what it is doing with it.
func (h horizon) podOf(b []byte, n int, x *executor) []byte {
	p := &x.tracker.view.pods[n]
	b = append(b, bits(p.known, p.seen, p.ended, p.deleted, p.releasedFirst, p.absent, p.absenceShown))
	if v := x.tracker.pods[n]; v != nil {
		b = append(append(b, h.ago(v.at), h.since(p.missingAt)), v.text...)
	}
	if p.absent {
		b = append(b, h.since(p.absentUntil))
	}
	if x.call != nil {
		b = h.callOf(b, n, 0, x.call)
	}
	for i := range x.todo {
		b = h.callOf(b, n, i+1, &x.todo[i])
	}
	return b
}

// callOf is what a call has to do with a pod.
func (h horizon) callOf(b []byte, n, i int, c *call) []byte {
	b = append(b, 200+byte(i))
	if (c.kind == callDelete || c.kind == callRelease) && c.n == n {
		b = append(b, 1)
		if c.as != nil {
			b = append(append(b, 2, h.ago(c.as.at), bits(c.as == h.cluster.pods[n])), c.as.text...)
		}
	}
	if c.pod != nil && c.pod.n == n {
		b = append(append(b, 3, h.ago(c.pod.at)), c.pod.text...)
	}
	if v := c.pods[n]; v != nil {
		b = append(append(b, 4, h.ago(v.at)), v.text...)
	}
	return append(b, byte(c.place[n]), bits(c.knew[n]))
}

// anExecutor is what an executor knows and does, but for single pods.
func (h horizon) anExecutor(b []byte, x *executor) []byte {
	v := &x.tracker.view
	b = append(b, 255, byte(len(h.world.jobs)-x.jobs), byte(len(h.world.events)-x.pods), byte(v.marks), byte(v.lifecycle), bits(v.expects, v.wasSuspended),
		byte(v.open), byte(v.creations), byte(v.unknown), v.indexes, h.since(v.listVersion))
	if j := x.tracker.job; j != nil {
		b = append(b, byte(len(h.world.jobs)-j.at))
	}
	if x.call != nil {
		b = h.aCall(append(b, 253), x.call)
	}
	for i := range x.todo {
		b = h.aCall(append(b, 252), &x.todo[i])
	}
	return b
}

func (h horizon) aCall(b []byte, c *call) []byte {
	b = append(b, byte(c.kind), byte(c.outcome), byte(c.index+1), bits(c.releaseFirst))
	for _, v := range []*jobVersion{c.base, c.job} {
		if v != nil {
			b = append(b, byte(len(h.world.jobs)-v.at))
		}
	}
	b = append(append(b, c.text...), 0)
	if c.kind == callList && c.outcome != pending {
		b = append(b, h.since(c.rv))
	}
	return b
}
