package exhaustive

import (
	"fmt"
	"hash/maphash"
	"slices"
	"testing"
)

// A view has all that the tracker knows.
func TestViewKnowsTheTracker(t *testing.T) {
	t.Parallel()
	if err := checkFields(); err != nil {
		t.Error(err)
	}
}

// States with the same key have the same future: the same steps lead to states with the same keys. Otherwise states would be
// left out. Executors are exchanged; pods are not, because the engine lists them in the order of their UIDs.
func TestEqualKeysHaveEqualFutures(t *testing.T) {
	t.Parallel()
	scopes := []Scope{
		{Name: "faults", Pods: 2, Executors: 1, Parallelism: 1, Completions: 1, BackoffLimit: 1, LateJobs: true, Faults: Faults{Losses: 1, Crashes: 1, Failures: 1, Deletions: 1}},
		{Name: "two executors", Pods: 1, Executors: 2, Parallelism: 1, Completions: 1, Running: true, LateJobs: true, Faults: Faults{Losses: 1, Crashes: 1, Toggles: 1}},
		{Name: "Indexed", Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, Indexed: true, Running: true, Waits: true},
		{Name: "Job deleted", Pods: 1, Executors: 2, Parallelism: 1, Completions: 1, Faults: Faults{JobDeletion: true, Losses: 1}},
	}
	for _, s := range scopes {
		t.Run(s.Name, func(t *testing.T) {
			k := keeper{seed: maphash.MakeSeed(), apart: true}
			futures := map[uint64]string{}
			again := 0
			queue := []*world{s.newWorld()}
			for ; len(queue) > 0 && again < 20_000; queue = queue[1:] {
				w := queue[0]
				var future []string
				var next []*world
				for _, m := range w.moves() {
					after := w.after(m)
					next = append(next, after)
					future = append(future, fmt.Sprint(m.what, m.as, k.of(after), len(after.problems)))
				}
				slices.Sort(future)
				known, ok := futures[k.of(w)]
				if ok {
					again++
					if got := fmt.Sprint(future); got != known {
						t.Fatalf("two states with one key, %v:\n%s\n%s", w, known, got)
					}
					continue
				}
				futures[k.of(w)] = fmt.Sprint(future)
				queue = append(queue, next...)
			}
			t.Logf("%d states, %d of them met again", len(futures), again)
		})
	}
}

// Exchanged pods are one state, unless their indexes tell them apart.
func TestExchangedPodsAreOneState(t *testing.T) {
	t.Parallel()
	k := keeper{seed: maphash.MakeSeed()}
	for _, indexed := range []bool{false, true} {
		s := Scope{Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, Indexed: indexed, Running: true}
		w := s.newWorld()
		first, second := k.of(w.after(move{what: succeeds, who: 0})), k.of(w.after(move{what: succeeds, who: 1}))
		if (first == second) == indexed || first == k.of(w) {
			t.Errorf("indexed %v: the keys are %x and %x", indexed, first, second)
		}
	}
}

// Exchanged executors are one state, and so are states that differ in faults that cannot come any more. No kind of state is
// left out for it: a search that does not know this meets states of just as many kinds.
func TestOneOfEachKindIsEnough(t *testing.T) {
	t.Parallel()
	scopes := []Scope{
		{Name: "two executors", Pods: 1, Executors: 2, Parallelism: 1, Completions: 1, Running: true},
		{Name: "faults", Pods: 1, Executors: 1, Parallelism: 1, Completions: 1, Running: true, Faults: Faults{Failures: 1, Deletions: 1, Toggles: 1, JobDeletion: true}},
	}
	for _, s := range scopes {
		t.Run(s.Name, func(t *testing.T) {
			one := Explorer{Limit: 100_000, keeper: keeper{apart: true}}
			reduced := one.Explore(&s)
			kinds := keeper{seed: maphash.MakeSeed(), apart: true}
			every := keeper{seed: kinds.seed, apart: true, plain: true}
			met, known := map[uint64]bool{}, map[uint64]bool{}
			for queue := []*world{s.newWorld()}; len(queue) > 0; queue = queue[1:] {
				w := queue[0]
				key := every.of(w)
				if known[key] {
					continue
				}
				known[key], met[kinds.of(w)] = true, true
				for _, m := range w.moves() {
					queue = append(queue, w.after(m))
				}
			}
			if !reduced.All || reduced.States != len(met) {
				t.Errorf("%d states of %d kinds, of which %d were met", len(known), len(met), reduced.States)
			}
			t.Logf("%d states are of %d kinds", len(known), len(met))
		})
	}
}
