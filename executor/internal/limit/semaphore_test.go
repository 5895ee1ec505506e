package limit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hold takes as many slots as it can without waiting, of so many tries.
func hold(s *Semaphore, key string, tries int, until <-chan struct{}) int {
	var n atomic.Int32
	for range tries {
		s.Start(key, func() {
			n.Add(1)
			<-until
		})
	}
	synctest.Wait()
	return int(n.Load())
}

// Even if many keys never release their slots, a new key gets one.
func TestNoKeyTakesAll(t *testing.T) {
	cases := map[string]struct {
		slots int
		want  []int // by key, each of which wants 100
	}{
		"as many as writes":        {64, []int{48, 12, 3, 1, 0}},
		"many slots":               {256, []int{100, 100, 42, 10, 3, 1, 0}},
		"fewer than a share":       {2, []int{1, 1, 0}},
		"one":                      {1, []int{1, 0}},
		"as many as one key wants": {400, []int{100, 100, 100, 75}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, end := NewSemaphore(tc.slots), make(chan struct{})
				var got []int
				for i := range tc.want {
					got = append(got, hold(s, string(rune('a'+i)), 100, end))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("slots by key (-want +got):\n%s", diff)
				}
				close(end)
				synctest.Wait()
				if s.Used() != 0 || s.Waiting() != 0 || len(s.keys) != 0 || s.free != tc.slots {
					t.Errorf("at rest %d are used, %d wait, %d keys are known, %d are free", s.Used(), s.Waiting(), len(s.keys), s.free)
				}
			})
		})
	}
}

// Keys take turns, and within a key the first comes first.
func TestKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphore(1)
		release, err := s.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var got []string
		for _, who := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
			s.Start(who[:1], func() {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, who)
			})
		}
		release()
		synctest.Wait()
		if want := []string{"a1", "b1", "c1", "a2", "b2", "a3"}; !slices.Equal(got, want) {
			t.Errorf("served %v, want %v", got, want)
		}
	})
}

// A waiter that has given up gets no slot.
func TestAWaiterMayGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphore(1)
		release, err := s.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "b"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.Acquire(ctx, key); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Acquire(%s) = %v", key, err)
			}
		}
		if s.Waiting() != 0 {
			t.Errorf("%d wait", s.Waiting())
		}
		release()
		if s.Used() != 0 || len(s.keys) != 0 {
			t.Errorf("%d are used, keys %v", s.Used(), s.keys)
		}
		if release, err = s.Acquire(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		release()
	})
}

// Under any load, no more than the slots are held, and all are served.
func TestSlotsAreNeverExceeded(t *testing.T) {
	const slots, tasks = 5, 2000
	s := NewSemaphore(slots)
	var at, most, done atomic.Int32
	var all sync.WaitGroup
	all.Add(tasks)
	for i := range tasks {
		s.Start(string(rune('a'+i%7)), func() {
			defer all.Done()
			now := at.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			done.Add(1)
			at.Add(-1)
		})
	}
	all.Wait()
	if most.Load() > slots || done.Load() != tasks {
		t.Errorf("%d at once, %d done", most.Load(), done.Load())
	}
}
