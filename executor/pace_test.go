package executor

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An API server that works on so many writes at a time lets the others wait.
func TestAPaceFindsHowManyWritesTheAPIServerWorksOn(t *testing.T) {
	const each = 4 * time.Millisecond
	cases := map[string]struct {
		limit, processors int
		min, max          int
	}{
		"two at a time, so a write may wait for two others": {16, 2, 3, 5},
		"four at a time":      {16, 4, 7, 9},
		"more than there are": {16, 64, 16, 16},
		"a low limit":         {1, 2, 1, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPace(tc.limit)
			takes := func(inFlight int) time.Duration {
				return max(each, each*time.Duration(inFlight)/time.Duration(tc.processors))
			}
			for i := range 5000 {
				if few := i%100 < fewWrites; few {
					p.learn(takes(fewInFlight), few)
				} else {
					p.learn(takes(p.now()), few)
				}
			}
			if w := p.now(); w < tc.min || w > tc.max {
				t.Errorf("%d writes in flight, want %d to %d", w, tc.min, tc.max)
			}
		})
	}
}

// A write that is answered after the server has asked to try again later counts
// from when it was sent first.
func TestAPaceSlowsDownForASlowServerAndRecovers(t *testing.T) {
	p := newPace(16)
	p.learn(time.Millisecond, true)
	for range 200 {
		p.learn(time.Second, false)
	}
	if w := p.now(); w != fewInFlight {
		t.Errorf("beside a slow server %d writes in flight, want %d", w, fewInFlight)
	}
	for range 500 {
		p.learn(time.Millisecond, false)
	}
	if w := p.now(); w != 16 {
		t.Errorf("when it is fast again %d writes in flight, want 16", w)
	}
}

// counted answers writes as an HTTP client does, and counts how many are in
// flight.
type counted struct {
	inFlight, most atomic.Int64
	mu             sync.Mutex
	seen           map[int]int
}

func (c *counted) write(ctx context.Context, i int) error {
	n := c.inFlight.Add(1)
	defer c.inFlight.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
		time.Sleep(100 * time.Microsecond)
		trace.GotFirstResponseByte()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[int]int{}
	}
	c.seen[i]++
	if i%10 == 7 {
		return fmt.Errorf("%d: %w", i, errOdd)
	}
	return nil
}

var errOdd = errors.New("odd")

func TestParallelMakesEveryWriteOnceAndKeepsItsWidth(t *testing.T) {
	for _, n := range []int{0, 1, 5, 8, 9, 400} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e := &Executor{writing: make(chan struct{}, 64)}
			var c counted
			p := newPace(8)
			err := e.parallel(t.Context(), p, n, c.write)
			if len(c.seen) != n {
				t.Errorf("%d writes were made, want %d", len(c.seen), n)
			}
			for i, times := range c.seen {
				if times != 1 {
					t.Errorf("write %d was made %d times", i, times)
				}
			}
			if most := c.most.Load(); most > 8 {
				t.Errorf("%d were in flight, want at most 8", most)
			}
			if failed := (n + 2) / 10; (err != nil) != (failed > 0) || (err != nil && !errors.Is(err, errOdd)) {
				t.Errorf("of %d that fail: %v", failed, err)
			}
			if timed := p.few != 0; timed != (n > 8) {
				t.Errorf("writes were timed: %v", timed)
			}
		})
	}
}

// A batch follows its pace while it is under way.
func TestABatchFollowsItsPace(t *testing.T) {
	e := &Executor{writing: make(chan struct{}, 64)}
	p := newPace(16)
	p.learn(time.Nanosecond, true)
	for p.now() > fewInFlight {
		p.learn(time.Hour, false)
	}
	var narrow, wide counted
	err := e.parallel(t.Context(), p, 60, func(ctx context.Context, i int) error {
		if i == 30 {
			p.mu.Lock()
			p.few, p.width = mean(time.Hour), 16
			p.mu.Unlock()
		}
		if i < 30 {
			return ignoreOdd(narrow.write(ctx, i))
		}
		return ignoreOdd(wide.write(ctx, i))
	})
	if err != nil {
		t.Fatal(err)
	}
	if narrow.most.Load() > fewInFlight || wide.most.Load() <= fewInFlight {
		t.Errorf("at most %d in flight while the pace was %d, and %d when it was 16", narrow.most.Load(), fewInFlight, wide.most.Load())
	}
}

func ignoreOdd(err error) error {
	if errors.Is(err, errOdd) {
		return nil
	}
	return err
}
