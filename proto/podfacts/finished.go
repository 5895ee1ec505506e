package podfacts

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxFinished is how many finished pods of a phase a request lists at most: more than one decision
// deletes, because the engine may keep some of them.
const maxFinished = 5000

// finished are the pods that have finished, are not tracked and are not being deleted. As for the retry delay, a pod that
// the Job does not count, because of its index, is none of them.
type finished[P any] struct {
	succeeded, failed byEnd
	// ends are their times when they were added, which tell their places.
	ends map[*Counted[P]]finishedAt
}

// finishedAt is a pod's place among those of its phase. It does not depend on when the pod was seen, so a
// restart does not change it.
type finishedAt struct {
	end time.Time
	uid string
}

func (a finishedAt) compare(b finishedAt) int {
	return cmp.Or(a.end.Compare(b.end), cmp.Compare(a.uid, b.uid))
}

// byEnd are pods of one phase in the order in which they finished.
type byEnd []finishedPod

type finishedPod struct {
	finishedAt
	index int32
}

// KeepFinished makes the counter keep what FinishedPods returns. pods are all that it counts. It sorts
// them once; from then on, until SetPolicy, Add and Remove take O(1) for a pod that ends late or is deleted
// early in the order.
func (c *Counter[P]) KeepFinished(pods iter.Seq[*Counted[P]]) {
	if c.finished != nil {
		return
	}
	c.finished = &finished[P]{ends: map[*Counted[P]]finishedAt{}}
	var all []*Counted[P]
	for e := range pods {
		all = append(all, e)
	}
	for _, e := range all {
		pod := c.facts(e.Pod)
		if at, ok := c.finished.note(e, &pod, &c.policy); ok {
			of := c.finished.of(e)
			*of = append(*of, at)
		}
	}
	c.finished.succeeded.sort()
	c.finished.failed.sort()
}

// add adds a pod if it is one of them.
func (f *finished[P]) add(e *Counted[P], pod *Pod, policy *Policy) {
	if at, ok := f.note(e, pod, policy); ok {
		f.of(e).insert(at)
	}
}

// note notes the place of a pod if it is one of them.
func (f *finished[P]) note(e *Counted[P], pod *Pod, policy *Policy) (at finishedPod, ok bool) {
	if !pod.ended() || !policy.inRange(pod) || pod.Tracked || pod.Deleting || e.Deleted || e.Stray || e.Missing {
		return finishedPod{}, false
	}
	at = finishedPod{finishedAt{pod.EndTime(), string(pod.UID)}, e.Share.index}
	f.ends[e] = at.finishedAt
	return at, true
}

func (f *finished[P]) remove(e *Counted[P]) {
	at, ok := f.ends[e]
	if !ok {
		return
	}
	delete(f.ends, e)
	f.of(e).remove(at)
}

func (f *finished[P]) of(e *Counted[P]) *byEnd {
	if e.succeeded {
		return &f.succeeded
	}
	return &f.failed
}

func (l byEnd) find(at finishedAt) (i int, found bool) {
	return slices.BinarySearchFunc(l, at, func(pod finishedPod, at finishedAt) int { return pod.compare(at) })
}

// sort puts pods into their order, each once: a caller may list a pod twice.
func (l *byEnd) sort() {
	slices.SortFunc(*l, func(a, b finishedPod) int { return a.compare(b.finishedAt) })
	*l = slices.CompactFunc(*l, func(a, b finishedPod) bool { return a.compare(b.finishedAt) == 0 })
}

func (l *byEnd) insert(pod finishedPod) {
	if i, found := l.find(pod.finishedAt); !found { // A caller may list a pod twice.
		*l = slices.Insert(*l, i, pod)
	}
}

// remove removes a pod. It moves those before it, because mostly one of the first is removed.
func (l *byEnd) remove(at finishedAt) {
	i, found := l.find(at)
	if !found {
		return
	}
	copy((*l)[1:i+1], (*l)[:i])
	*l = (*l)[1:]
}

// first lists the pods that finished first, as many as there are more than keep; nil keeps all.
func (l byEnd) first(keep *int32, phase jobpolicyv1.PodPhase) []*jobpolicyv1.FinishedPod {
	if keep == nil {
		return nil
	}
	n := min(max(0, len(l)-int(*keep)), maxFinished)
	rows := make([]*jobpolicyv1.FinishedPod, 0, n)
	for _, pod := range l[:n] {
		rows = append(rows, &jobpolicyv1.FinishedPod{
			Uid: []byte(pod.uid), Phase: phase, Index: indexField(pod.index), FinishedTime: timestamppb.New(pod.end),
		})
	}
	return rows
}

// FinishedPods are the finished pods that are accounted for, as the options ask for them; nil without
// options.keep_finished_pods or KeepFinished. Its rows are in ascending order of UID. With options.next_try_resources, none is about a
// failed pod of a Job that is not Indexed.
func (c *Counter[P]) FinishedPods(options *jobpolicyv1.JobOptions) *jobpolicyv1.FinishedPods {
	keep := options.GetKeepFinishedPods()
	if keep == nil || c.finished == nil {
		return nil
	}
	f, keepFailed := c.finished, keep.Failed
	if !c.policy.Indexed && options.GetNextTryResources() != nil {
		keepFailed = nil // Each of them raises the next pods' resources, so none is ever deleted.
	}
	m := &jobpolicyv1.FinishedPods{
		Succeeded: int32(len(f.succeeded)), Failed: int32(len(f.failed)),
		First: slices.Concat(
			f.succeeded.first(keep.Succeeded, jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED),
			f.failed.first(keepFailed, jobpolicyv1.PodPhase_POD_PHASE_FAILED)),
	}
	slices.SortFunc(m.First, func(a, b *jobpolicyv1.FinishedPod) int { return bytes.Compare(a.Uid, b.Uid) })
	return m
}
