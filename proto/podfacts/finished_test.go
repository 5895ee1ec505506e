package podfacts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Of pods that come, end, lose their finalizer, begin to be deleted and go in any order, the finished ones are those that a
// list of all of them shows.
func TestFinishedPodsAreThoseThatAreThere(t *testing.T) {
	const seeds, pods, steps = 50, 12, 200
	keep := &jobpolicyv1.JobOptions{KeepFinishedPods: &jobpolicyv1.KeepFinishedPods{Succeeded: proto.Int32(2), Failed: proto.Int32(0)}}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 0))
		counter := New(Policy{}, func(p *Pod) Pod { return *p })
		all := make([]*Counted[*Pod], pods)
		for step := range steps {
			if step == steps/2 {
				recount(counter, all)
			}
			if step == steps/4 || step == steps/2 {
				counter.KeepFinished(slices.Values(there(all)))
			}
			i := r.IntN(pods)
			if e := all[i]; e != nil {
				counter.Remove(e)
			}
			if all[i] = nil; r.IntN(4) > 0 {
				all[i] = drawnPod(r, i)
				counter.Add(all[i], true)
			}
		}
		got := counter.FinishedPods(keep)
		want := wantFinished(all, keep.KeepFinishedPods)
		if got.String() != want.String() {
			t.Fatalf("seed %d: got %s, want %s", seed, got, want)
		}
	}
}

func there(all []*Counted[*Pod]) []*Counted[*Pod] {
	return slices.DeleteFunc(slices.Clone(all), func(e *Counted[*Pod]) bool { return e == nil })
}

// recount counts all pods again by a new policy.
func recount(counter *Counter[*Pod], all []*Counted[*Pod]) {
	counter.SetPolicy(Policy{Starts: true})
	for _, e := range there(all) {
		counter.Remove(e)
		counter.Add(e, true)
	}
}

// To keep them of many pods, which are seen in any order, takes no time that grows with the square of their number: that
// would be more than a hundred times as long as to sort them.
func TestFinishedPodsOfManyAreKeptQuickly(t *testing.T) {
	const pods, most = 200_000, 30
	counter := New(Policy{}, func(p *Pod) Pod { return *p })
	all := make([]*Counted[*Pod], pods)
	for i, at := range rand.New(rand.NewPCG(1, 0)).Perm(pods) {
		all[i] = &Counted[*Pod]{Pod: &Pod{UID: fmt.Appendf(nil, "%06d", i), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, Finished: time.Unix(int64(1+at), 0)}}
		counter.Add(all[i], true)
	}
	begin := time.Now()
	slices.SortFunc(slices.Clone(all), func(a, b *Counted[*Pod]) int { return a.Pod.Finished.Compare(b.Pod.Finished) })
	sorted := time.Since(begin)
	counter.KeepFinished(slices.Values(all))
	recount(counter, all)
	counter.KeepFinished(slices.Values(all))
	if took := time.Since(begin) - sorted; took > most*sorted || len(counter.finished.failed) != pods {
		t.Errorf("it took %s, and %d are kept; want at most %d times %s and %d", took, len(counter.finished.failed), most, sorted, pods)
	}
}

func drawnPod(r *rand.Rand, i int) *Counted[*Pod] {
	phases := []jobpolicyv1.PodPhase{jobpolicyv1.PodPhase_POD_PHASE_RUNNING, jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, jobpolicyv1.PodPhase_POD_PHASE_FAILED}
	return &Counted[*Pod]{
		Pod: &Pod{
			UID: fmt.Appendf(nil, "%02d", i), Phase: phases[r.IntN(len(phases))], Tracked: r.IntN(4) == 0, Deleting: r.IntN(6) == 0,
			Finished: time.Unix(1+r.Int64N(5), 0),
		},
		Deleted: r.IntN(8) == 0, Stray: r.IntN(8) == 0, Missing: r.IntN(8) == 0,
	}
}

// wantFinished finds by looking at all pods what a Counter keeps up to date.
func wantFinished(all []*Counted[*Pod], keep *jobpolicyv1.KeepFinishedPods) *jobpolicyv1.FinishedPods {
	byPhase := map[jobpolicyv1.PodPhase][]*Pod{}
	for _, e := range all {
		if e != nil && e.Pod.ended() && !e.Pod.Tracked && !e.Pod.Deleting && !e.Deleted && !e.Stray && !e.Missing {
			byPhase[e.Pod.Phase] = append(byPhase[e.Pod.Phase], e.Pod)
		}
	}
	succeeded, failed := byPhase[jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED], byPhase[jobpolicyv1.PodPhase_POD_PHASE_FAILED]
	want := &jobpolicyv1.FinishedPods{Succeeded: int32(len(succeeded)), Failed: int32(len(failed))}
	first := slices.Concat(firstOf(succeeded, *keep.Succeeded), firstOf(failed, *keep.Failed))
	slices.SortFunc(first, func(a, b *Pod) int { return slices.Compare(a.UID, b.UID) })
	for _, pod := range first {
		want.First = append(want.First, &jobpolicyv1.FinishedPod{Uid: pod.UID, Phase: pod.Phase, FinishedTime: optionalTime(pod.Finished)})
	}
	return want
}

func firstOf(pods []*Pod, keep int32) []*Pod {
	slices.SortFunc(pods, func(a, b *Pod) int {
		if c := a.Finished.Compare(b.Finished); c != 0 {
			return c
		}
		return slices.Compare(a.UID, b.UID)
	})
	return pods[:max(0, len(pods)-int(keep))]
}

// A Job that is not to keep few costs nothing.
func TestFinishedPodsAreNotKeptUnasked(t *testing.T) {
	counter := New(Policy{}, func(p *Pod) Pod { return *p })
	counter.Add(&Counted[*Pod]{Pod: &Pod{UID: []byte("a"), Phase: jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED}}, true)
	if counter.finished != nil || counter.FinishedPods(&jobpolicyv1.JobOptions{}) != nil {
		t.Error("finished pods are kept, and no option asks for them")
	}
}

// Of a Job that is not Indexed and raises the resources of its next pods, no failed pod is listed: each may raise them.
func TestFinishedPodsThatStayInAnyCaseAreNotListed(t *testing.T) {
	raises := &jobpolicyv1.JobOptions{
		KeepFinishedPods: &jobpolicyv1.KeepFinishedPods{Failed: proto.Int32(0)}, NextTryResources: &jobpolicyv1.NextTryResources{},
	}
	for indexed, want := range map[bool]int{false: 0, true: 1} {
		counter := New(Policy{Indexed: indexed, Completions: 1}, func(p *Pod) Pod { return *p })
		counter.KeepFinished(slices.Values([]*Counted[*Pod]{}))
		counter.Add(&Counted[*Pod]{Pod: &Pod{UID: []byte("a"), Index: proto.Int32(0), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED}}, true)
		if got := counter.FinishedPods(raises); len(got.GetFirst()) != want || got.GetFailed() != 1 {
			t.Errorf("indexed %v: got %v, want 1 failed pod and %d rows", indexed, got, want)
		}
	}
}
