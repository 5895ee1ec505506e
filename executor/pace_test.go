package executor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobpolicy.dev/executor/semaphore"
)

// An API server that works on so many writes at a time lets the others wait.
func TestAPaceLetsTwoWritesWait(t *testing.T) {
	const each = 4 * time.Millisecond
	cases := map[string]struct {
		limit, processors int
		min, max          int
	}{
		"two at a time, so two wait":  {16, 2, 3, 5},
		"four at a time, so two wait": {16, 4, 5, 7},
		"more than there are":         {16, 64, 16, 16},
		"a low limit":                 {1, 2, 1, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p pace
			for i := range 5000 {
				inFlight := p.width(tc.limit)
				if i%100 < fewWrites {
					inFlight = min(inFlight, fewInFlight)
				}
				took := max(each, each*time.Duration(inFlight)/time.Duration(tc.processors))
				p.learn(took, inFlight <= fewInFlight, tc.limit)
			}
			if w := p.width(tc.limit); w < tc.min || w > tc.max {
				t.Errorf("%d writes in flight, want %d to %d", w, tc.min, tc.max)
			}
		})
	}
}

func TestAPaceFollowsTheServer(t *testing.T) {
	const limit = 16
	getSlow := func(p *pace) {
		p.learn(time.Millisecond, true, limit)
		for range 500 {
			p.learn(time.Second, false, limit)
		}
	}
	cases := map[string]struct {
		learn func(*pace)
		want  int
	}{
		"nothing is known": {func(*pace) {}, limit},
		"nothing is known of few": {func(p *pace) {
			for range 500 {
				p.learn(time.Second, false, limit)
			}
		}, limit},
		"the server gets slow": {getSlow, fewInFlight},
		"it is fast again": {func(p *pace) {
			getSlow(p)
			for range 500 {
				p.learn(time.Millisecond, false, limit)
			}
		}, limit},
		"it stays slow, however few writes there are": {func(p *pace) {
			p.learn(time.Millisecond, true, limit)
			for i := range 5000 {
				p.learn(time.Second, i%100 < fewWrites || p.width(limit) <= fewInFlight, limit)
			}
		}, limit},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p pace
			tc.learn(&p)
			if got := p.width(limit); got != tc.want {
				t.Errorf("%d writes in flight, want %d", got, tc.want)
			}
		})
	}
}

// counted makes writes as an HTTP client does, and counts how many are in flight.
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
		trace.GotConn(httptrace.GotConnInfo{})
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

// As many are in flight as have succeeded, and one; none begins after a failure.
func TestCautiousWritesBeginWithOneAndStopAtAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, bad = 8, 40
		var p pace
		var mu sync.Mutex
		var inFlight []int // after the first, the second, … has begun
		ended := 0
		err := writer(limit).cautiously(t.Context(), &jobState{}, &p, 100, func(_ context.Context, i int) error {
			mu.Lock()
			n := len(inFlight) + 1 - ended
			if n > 1+ended {
				t.Errorf("%d in flight after %d have ended", n, ended)
			}
			inFlight = append(inFlight, n)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			ended++
			if i == bad {
				return errOdd
			}
			return nil
		})
		if begun := len(inFlight); begun <= bad || begun > bad+2*limit {
			t.Errorf("%d were tried, and write %d failed", begun, bad)
		}
		if most := slices.Max(inFlight); most != limit {
			t.Errorf("at most %d in flight, want %d", most, limit)
		}
		if want := fmt.Sprintf("1 of 100 failed and %d were not tried", 100-len(inFlight)); !errors.Is(err, errOdd) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %v and %q", err, errOdd, want)
		}
	})
}

// What waits for one of all Jobs' slots while another fails is not tried.
func TestACautiousWriteThatWaitsForItsSlotLooksAgain(t *testing.T) {
	e := &Executor{writing: semaphore.New(1), cfg: Config{MaxJobWrites: 8}}
	var p pace
	tried := 0
	err := e.cautiously(t.Context(), &jobState{}, &p, 20, func(context.Context, int) error {
		if tried++; tried == 10 {
			return errOdd
		}
		return nil
	})
	if tried != 10 || !errors.Is(err, errOdd) {
		t.Errorf("%d were tried one after the other, and the 10th failed: %v", tried, err)
	}
}

// Nobody waits behind a Job that is alone. Once another has its turn, no more begin
// until fewer are in flight.
func TestAJobThatIsAloneHasMoreWritesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, lone = 8, 20
		e := &Executor{writing: semaphore.New(64), cfg: Config{MaxJobWrites: limit, LoneJobWrites: lone}}
		s := &jobState{uid: testUID(1)}
		most := func() int64 {
			var c counted
			if err := e.parallel(t.Context(), s, &s.patching, 100, func(ctx context.Context, _ int) error {
				n := c.inFlight.Add(1)
				defer c.inFlight.Add(-1)
				c.most.Store(max(n, c.most.Load()))
				time.Sleep(time.Millisecond)
				return nil
			}); err != nil {
				t.Error(err)
			}
			return c.most.Load()
		}
		e.turns.take(s.uid)
		if got := most(); got != lone {
			t.Errorf("%d in flight of a Job that is alone, want %d", got, lone)
		}
		e.turns.take(testUID(2))
		e.turns.take(s.uid)
		if got := most(); got != limit {
			t.Errorf("%d in flight beside another Job, want %d", got, limit)
		}
		time.Sleep(lonePeriod)
		e.turns.take(s.uid)
		if got := most(); got != lone {
			t.Errorf("%d in flight after the other Job, want %d", got, lone)
		}
	})
}

func TestACautiousWriteThatFailsIsTheOnlyOne(t *testing.T) {
	var p pace
	tried := 0
	err := writer(8).cautiously(t.Context(), &jobState{}, &p, 5, func(context.Context, int) error { tried++; return errOdd })
	if tried != 1 || !errors.Is(err, errOdd) {
		t.Errorf("%d were tried, error %v", tried, err)
	}
}

// writer has what parallel needs of an Executor.
func writer(jobWrites int) *Executor {
	return &Executor{writing: semaphore.New(64), cfg: Config{MaxJobWrites: jobWrites}}
}

func TestParallelMakesEveryWriteOnceAndKeepsItsWidth(t *testing.T) {
	for _, n := range []int{0, 1, 5, 8, 9, 400} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var c counted
			var p pace
			err := writer(8).parallel(t.Context(), &jobState{}, &p, n, c.write)
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
	const limit = 16
	p := pace{narrower: limit - fewInFlight, few: 1, many: mean(1000 * time.Hour), fewAt: time.Now()}
	var narrow, wide counted
	err := writer(limit).parallel(t.Context(), &jobState{}, &p, 60, func(ctx context.Context, i int) error {
		if i == 30 {
			p.mu.Lock()
			p.narrower, p.few = 0, mean(1000*time.Hour)
			p.mu.Unlock()
		}
		if i < 30 {
			// Not timed, so that the pace stays as it is.
			return ignoreOdd(narrow.write(httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
				GotConn: func(httptrace.GotConnInfo) {}, GotFirstResponseByte: func() {},
			}), i))
		}
		return ignoreOdd(wide.write(ctx, i))
	})
	if err != nil {
		t.Fatal(err)
	}
	if narrow.most.Load() > fewInFlight || wide.most.Load() <= fewInFlight {
		t.Errorf("at most %d in flight while the pace was %d, and %d when it was %d", narrow.most.Load(), fewInFlight, wide.most.Load(), limit)
	}
}

func ignoreOdd(err error) error {
	if errors.Is(err, errOdd) {
		return nil
	}
	return err
}

func TestWhatAWriteTakes(t *testing.T) {
	const slow = 200 * time.Millisecond
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			select {
			case <-r.Context().Done():
			case <-time.After(slow):
			}
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	get := func(ctx context.Context, path string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			return err
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			return err
		}
		if resp.ProtoMajor != 2 {
			t.Errorf("the server speaks %s", resp.Proto)
		}
		return resp.Body.Close()
	}
	cases := map[string]struct {
		write    func(ctx context.Context) error
		min, max time.Duration
	}{
		"no request":  {func(context.Context) error { return nil }, 0, 0},
		"one request": {func(ctx context.Context) error { return get(ctx, "/slow") }, slow, time.Hour},
		"one without an answer": {func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, slow/2)
			defer cancel()
			if err := get(ctx, "/slow"); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("not timed out: %w", err)
			}
			return nil
		}, 1, time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &batch{ctx: t.Context(), large: true, write: func(ctx context.Context, _ int) error { return tc.write(ctx) }}
			took, err := b.timed(0)
			if err != nil {
				t.Fatal(err)
			}
			if took < tc.min || took > tc.max {
				t.Errorf("took %v, want %v to %v", took, tc.min, tc.max)
			}
		})
	}
}

// A write that was sent again, or that takes two requests, took what the last one
// took.
func TestTheLastRequestIsTimed(t *testing.T) {
	var c clock
	c.sent()
	c.start = c.start.Add(-time.Hour)
	c.answered()
	if took := c.took(); took < time.Hour {
		t.Errorf("the first took %v, want an hour", took)
	}
	c.sent()
	c.answered()
	if took := c.took(); took >= time.Hour {
		t.Errorf("with the first, the second took %v", took)
	}
}
