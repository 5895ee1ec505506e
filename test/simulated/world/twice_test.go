package world

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// sampled is how many seeds TestASeedGivesTheSameHistoryTwice plays. docs/worlds.md says why some
// other seeds may give two histories: none of these does.
const sampled = 20

// TestASeedGivesTheSameHistoryTwice plays some worlds in two processes, in opposite orders, and compares the logs
// of writes byte for byte.
func TestASeedGivesTheSameHistoryTwice(t *testing.T) {
	prepare()
	twice := sameness{}
	for _, down := range []bool{false, true} {
		pool := workerPool{
			binary: os.Args[0], args: []string{"-world.twice"}, workers: 1,
			seeds: &seedRange{next: 1, end: 1 + sampled, down: down}, tell: twice.add,
		}
		if err := pool.play(t); err != nil {
			t.Fatal(err)
		}
	}
	if twice.all != sampled || twice.same != sampled {
		t.Errorf("%d of %d worlds were played twice. %s", twice.all, sampled, twice)
	}
}

// What is due at the same instant happens in the order in which it was planned.
func TestOneInstantHasAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{agenda: map[int64][]func(){}}
		var done []int
		for n := range 20 {
			w.after(time.Second, func() { done = append(done, n) })
		}
		time.Sleep(2 * time.Second)
		if len(done) != 20 || !slices.IsSorted(done) {
			t.Errorf("the order is %v", done)
		}
	})
}
