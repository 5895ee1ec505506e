package exhaustive

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/tracker"
)

// An executor is one process: what its tracker was told, and what it is doing.
type executor struct {
	tracker *trackerState
	// jobs and pods are how far the two watches have come: the last version of the Job that was shown, and the next
	// event of pods to be shown.
	jobs, pods int
	// todo are the calls of the decision that is being carried out; call is under way; nil: none is.
	todo []call
	call *call
}

// A trackerState is a tracker, which follows from what it was told. Executors that know the same share one, so a tracker
// is told again only what no tracker in this state was told before.
type trackerState struct {
	before *trackerState
	depth  int // How many ops led here.
	told   op
	trackerKey
	next  map[op]*trackerState
	plans map[planKey]*plan
}

// A trackerKey tells a trackerState from all others.
type trackerKey struct {
	view     view
	job      *jobVersion
	pods     [maxPods]*podVersion // nil: not known.
	expected *batchv1.JobStatus
	// under is how the call that is under way began; 0: none is.
	under opKind
}

// A planKey is what a decision depends on, except for the tracker: what the pod cache has.
type planKey struct {
	cached [maxPods]*podVersion
	rv     uint64
	waits  bool // Routine statuses wait.
}

// A plan is what an executor does next if no call is under way and no decision is being carried out.
type plan struct {
	calls []call
	// quiet is what the reconcile changes about the tracker.
	quiet []op
	err   error
}

// A memory has each version and each trackerState once.
type memory struct {
	plant     Plant
	knownJobs map[jobKey]*jobVersion
	knownPods map[podKey]*podVersion
	states    map[trackerKey]*trackerState
	nothing   *trackerState
}

func newMemory(plant Plant) *memory {
	return &memory{
		plant: plant, knownJobs: map[jobKey]*jobVersion{}, knownPods: map[podKey]*podVersion{}, states: map[trackerKey]*trackerState{},
		nothing: newTrackerState(nil, op{}, trackerKey{}),
	}
}

func newTrackerState(before *trackerState, told op, key trackerKey) *trackerState {
	s := &trackerState{before: before, told: told, trackerKey: key, next: map[op]*trackerState{}, plans: map[planKey]*plan{}}
	if before != nil {
		s.depth = before.depth + 1
	}
	return s
}

// learn is the trackerState after it was told more.
func (k *memory) learn(m *trackerState, ops ...op) *trackerState {
	for _, o := range ops {
		next := m.next[o]
		if next == nil {
			next = k.learned(m, o)
			m.next[o] = next
		}
		m = next
	}
	return m
}

func (k *memory) learned(m *trackerState, o op) *trackerState {
	j := k.replayed(append(m.all(), o))
	key := trackerKey{view: viewOf(j), expected: m.expected, under: m.under}
	switch o.kind {
	case expect:
		key.expected = o.status
	case createBegins, callBegins, listBegins:
		key.under = o.kind
	case created, creationUnknown, callEnds, listEnds:
		key.under = 0
	}
	key.findVersions(j.Current(), m, &o)
	known := k.states[key]
	if known == nil {
		known = newTrackerState(m, o, key)
		k.states[key] = known
	}
	return known
}

// findVersions sets what the tracker knows, after m was told o.
func (key *trackerKey) findVersions(current *batchv1.Job, m *trackerState, o *op) {
	for _, v := range []*jobVersion{m.job, o.job} {
		if v != nil && v.job == current && current != nil {
			key.job = v
		}
	}
	for n := range key.pods {
		for _, v := range []*podVersion{m.pods[n], o.pods[n], o.pod} {
			if v != nil && v.n == n && key.view.pods[n].known && key.view.pods[n].rv == v.rv {
				key.pods[n] = v
			}
		}
	}
}

// all are the ops that lead to a trackerState. There is room for one more.
func (m *trackerState) all() []op {
	told := make([]op, m.depth, m.depth+1)
	for ; m.before != nil; m = m.before {
		told[m.depth-1] = m.told
	}
	return told
}

// replayed is a tracker that was told all that.
func (k *memory) replayed(told []op) *tracker.Job {
	r := replay{Job: tracker.New(tracker.Key{Namespace: "n", UID: jobUID}, nil), plant: k.plant}
	for _, o := range told {
		r.tell(o)
	}
	return r.Job
}
