package podjob

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"jobpolicy.dev/test/world/apiserver"
)

var (
	seedsFlag = flag.Uint64("podjob.seeds", 400, "number of worlds")
	fromFlag  = flag.Uint64("podjob.from", 1, "seed of the first world")
	tellFlag  = flag.Bool("podjob.tell", false, "print the story of each world")
)

// leastWorlds is how many worlds have every kind of fault and ending among them.
const leastWorlds = 400

// TestWorlds plays worlds, and fails if a rule is broken in one of them.
func TestWorlds(t *testing.T) {
	prepare()
	var (
		total  tally
		mu     sync.Mutex
		broken atomic.Int32
		next   atomic.Uint64
	)
	next.Store(*fromFlag)
	t.Run("play", func(t *testing.T) {
		for n := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				for seed := next.Add(1) - 1; seed < *fromFlag+*seedsFlag; seed = next.Add(1) - 1 {
					counts, found, story := play(t, seed)
					mu.Lock()
					total.add(counts)
					mu.Unlock()
					for _, text := range found {
						t.Error(text)
					}
					if *tellFlag || len(found) > 0 && broken.Add(1) <= 2 {
						t.Logf("%s\n%s", draw(seed), strings.Join(story, "\n"))
					}
				}
			})
		}
	})
	fmt.Fprintln(os.Stderr, total.line())
	if *seedsFlag >= leastWorlds {
		total.check(t)
	}
	if testing.Verbose() {
		for _, what := range sortedKeys(total.came) {
			t.Logf("%6d  %s", total.came[what], what)
		}
	}
}

// prepare makes what all worlds of a process share. None of it may belong to a bubble.
func prepare() {
	utilruntime.ErrorHandlers = nil // They log, and sleep.
	apiserver.GrowStacks()
	newClient(apiserver.New(apiserver.Options{}).Transport("nobody"))
}

// kinds are everything that must come up in the default number of worlds.
func kinds() []string {
	all := slices.Concat(faults, strange, groupEnds, []string{
		"a pod gets another owner during a Step", "a pod is lost during a Step", "a pod ends during a Step",
	})
	for _, e := range endings {
		all = append(all, string(e))
	}
	for _, reason := range []string{byRecord, byIndex, ownerIsGone, byFinish, bySuccess, notAsked, isIgnored, whileAway, isSurplus} {
		all = append(all, "a release: "+reason)
	}
	return all
}

// line says how much was played.
func (t *tally) line() string {
	played := 0
	for _, what := range slices.Concat(faults, strange) {
		played += t.came[what]
	}
	return fmt.Sprintf("%d worlds, %d writes, %d requests, %d faults; groups: %d complete, %d failed, %d suspended, %d with parallelism 0",
		t.worlds, t.writes, t.requests, played, t.came[isComplete], t.came[hasFailed], t.came[standsSuspended], t.came[standsIdle])
}

// check fails if something never came up: then the worlds prove less than they say.
func (t *tally) check(test *testing.T) {
	for _, what := range kinds() {
		if t.came[what] == 0 {
			test.Errorf("in %d worlds this never came up: %s", t.worlds, what)
		}
	}
}
