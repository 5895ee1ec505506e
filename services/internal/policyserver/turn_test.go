package policyserver

import (
	"testing"
	"testing/synctest"
)

// A caller's batch lets its other calls have a turn in between.
func TestABatchHandsItsTurnOverAfterSomeItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller("caller", "caller", newPools(Config{MaxConcurrentCalls: 2, MaxOpenCalls: 2, MemoryLimit: MinMemoryLimit})) // one of one caller
		batch, other := &turn{call: &call{conn: &connection{caller: c}}}, &turn{call: &call{conn: &connection{caller: c}}}
		answered, otherAfter := 0, -1
		for answered < 2*itemsPerTurn {
			if err := batch.wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			answered++
			if answered == 1 {
				go func() {
					if err := other.wait(t.Context(), 1); err != nil {
						t.Error(err)
					}
					otherAfter = answered
					other.end()
				}()
			}
			synctest.Wait()
		}
		batch.end()
		synctest.Wait()
		if otherAfter != itemsPerTurn {
			t.Errorf("the other call had its turn after %d items, want %d", otherAfter, itemsPerTurn)
		}
		if held := c.turns.pool.held.Load(); held != 0 {
			t.Errorf("%d turns are held at the end", held)
		}
	})
}
