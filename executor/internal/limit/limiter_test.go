package limit

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
)

// An API server that works on so many writes at a time lets the others wait.
func TestALimiterLetsTwoWritesWait(t *testing.T) {
	const each = 4 * time.Millisecond
	cases := map[string]struct {
		limit, processors int
		min, max          int
	}{
		"two at a time, so two wait":  {limit: 16, processors: 2, min: 3, max: 5},
		"four at a time, so two wait": {limit: 16, processors: 4, min: 5, max: 7},
		"more than there are":         {limit: 16, processors: 64, min: 16, max: 16},
		"a low limit":                 {limit: 1, processors: 2, min: 1, max: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var v vegas
			for i := range 5000 {
				inFlight := v.limit(tc.limit)
				if i%100 < baselineWrites {
					inFlight = min(inFlight, baselineInFlight)
				}
				took := max(each, each*time.Duration(inFlight)/time.Duration(tc.processors))
				v.observe(took, inFlight <= baselineInFlight, tc.limit, time.Now())
			}
			if w := v.limit(tc.limit); w < tc.min || w > tc.max {
				t.Errorf("%d writes in flight, want %d to %d", w, tc.min, tc.max)
			}
		})
	}
}

func TestALimitFollowsTheServer(t *testing.T) {
	const limit = 16
	getSlow := func(v *vegas) {
		v.observe(time.Millisecond, true, limit, time.Now())
		for range 500 {
			v.observe(time.Second, false, limit, time.Now())
		}
	}
	cases := map[string]struct {
		learn func(*vegas)
		want  int
	}{
		"nothing is known": {learn: func(*vegas) {}, want: limit},
		"there is no baseline": {
			learn: func(v *vegas) {
				for range 500 {
					v.observe(time.Second, false, limit, time.Now())
				}
			},
			want: limit,
		},
		"the server gets slow": {learn: getSlow, want: baselineInFlight},
		"it is fast again": {
			learn: func(v *vegas) {
				getSlow(v)
				for range 500 {
					v.observe(time.Millisecond, false, limit, time.Now())
				}
			},
			want: limit,
		},
		"it stays slow, however few writes there are": {
			learn: func(v *vegas) {
				v.observe(time.Millisecond, true, limit, time.Now())
				for i := range 5000 {
					v.observe(time.Second, i%100 < baselineWrites || v.limit(limit) <= baselineInFlight, limit, time.Now())
				}
			},
			want: limit,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var v vegas
			tc.learn(&v)
			if got := v.limit(limit); got != tc.want {
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

// begin counts a write that begins. Call end when it ends.
func (c *counted) begin() (end func()) {
	n := c.inFlight.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	return func() { c.inFlight.Add(-1) }
}

func (c *counted) write(ctx context.Context, i int) error {
	defer c.begin()()
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

// One more write is in flight than have succeeded, and none begins after a failure.
func TestASlowStartBeginsWithOneWriteAndStopsAtAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, bad = 8, 40
		var mu sync.Mutex
		var inFlight []int // after the first, the second, … has begun
		ended := 0
		err := poolOf(limit).SlowStart("ns", "a").Do(t.Context(), 100, func(_ context.Context, i int) error {
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

// A write that waits for a slot of the Pool while another one fails is not tried.
func TestASlowStartStopsWritesThatWaitForASlot(t *testing.T) {
	l := NewPool(Config{Total: 1, PerJob: 8}).SlowStart("ns", "a")
	tried := 0
	err := l.Do(t.Context(), 20, func(context.Context, int) error {
		if tried++; tried == 10 {
			return errOdd
		}
		return nil
	})
	if tried != 10 || !errors.Is(err, errOdd) {
		t.Errorf("%d were tried one after the other, and the 10th failed: %v", tried, err)
	}
}

// A Job that is alone may have more writes in flight, because no other Job waits. Once
// another Job is active, no write begins until fewer are in flight.
func TestAJobThatIsAloneHasMoreWritesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, lone = 8, 20
		p := NewPool(Config{Total: 64, PerJob: limit, Alone: lone})
		l := p.Limiter("ns", "a")
		most := func() int64 {
			var c counted
			if err := l.Do(t.Context(), 100, func(ctx context.Context, _ int) error {
				defer c.begin()()
				time.Sleep(time.Millisecond)
				return nil
			}); err != nil {
				t.Error(err)
			}
			return c.most.Load()
		}
		p.Active("a")
		if got := most(); got != lone {
			t.Errorf("%d in flight of a Job that is alone, want %d", got, lone)
		}
		p.Active("b")
		p.Active("a")
		if got := most(); got != limit {
			t.Errorf("%d in flight beside another Job, want %d", got, limit)
		}
		time.Sleep(alonePeriod)
		p.Active("a")
		if got := most(); got != lone {
			t.Errorf("%d in flight after the other Job, want %d", got, lone)
		}
	})
}

func TestASlowStartWhoseFirstWriteFailsMakesNoOther(t *testing.T) {
	tried := 0
	err := poolOf(8).SlowStart("ns", "a").Do(t.Context(), 5, func(context.Context, int) error { tried++; return errOdd })
	if tried != 1 || !errors.Is(err, errOdd) {
		t.Errorf("%d were tried, error %v", tried, err)
	}
}

func poolOf(perJob int) *Pool { return NewPool(Config{Total: 64, PerJob: perJob}) }

func TestEveryWriteIsMadeOnceWithinTheLimit(t *testing.T) {
	for _, n := range []int{0, 1, 5, 8, 9, 400} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var c counted
			l := poolOf(8).Limiter("ns", "a")
			err := l.Do(t.Context(), n, c.write)
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
			if timed := l.vegas.baseline != 0; timed != (n > 8) {
				t.Errorf("writes were timed: %v", timed)
			}
		})
	}
}

// A batch follows a limit that changes while it is under way.
func TestABatchFollowsItsLimit(t *testing.T) {
	const limit = 16
	l := poolOf(limit).Limiter("ns", "a")
	v := &l.vegas
	v.reduction, v.baseline, v.observed, v.measuredAt = limit-baselineInFlight, 1, mean(1000*time.Hour), time.Now()
	var narrow, wide counted
	err := l.Do(t.Context(), 60, func(ctx context.Context, i int) error {
		if i == 30 {
			v.mu.Lock()
			v.reduction, v.baseline = 0, mean(1000*time.Hour)
			v.mu.Unlock()
		}
		if i < 30 {
			// Without a measured latency the limit does not change.
			return ignoreOdd(narrow.write(httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
				GotConn: func(httptrace.GotConnInfo) {}, GotFirstResponseByte: func() {},
			}), i))
		}
		return ignoreOdd(wide.write(ctx, i))
	})
	if err != nil {
		t.Fatal(err)
	}
	if narrow.most.Load() > baselineInFlight || wide.most.Load() <= baselineInFlight {
		t.Errorf("at most %d in flight while the limit was %d, and %d when it was %d", narrow.most.Load(), baselineInFlight, wide.most.Load(), limit)
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
	// The connection is there before the cases: to make it may take longer than their timeouts.
	if err := get(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		write    func(ctx context.Context) error
		min, max time.Duration
	}{
		"no request":  {write: func(context.Context) error { return nil }, min: 0, max: 0},
		"one request": {write: func(ctx context.Context) error { return get(ctx, "/slow") }, min: slow, max: time.Hour},
		"one without an answer": {
			write: func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, slow/2)
				defer cancel()
				if err := get(ctx, "/slow"); !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("not timed out: %w", err)
				}
				return nil
			},
			min: 1, max: time.Hour,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			took, err := timed(t.Context(), tc.write)
			if err != nil {
				t.Fatal(err)
			}
			if took < tc.min || took > tc.max {
				t.Errorf("took %v, want %v to %v", took, tc.min, tc.max)
			}
		})
	}
}

// If a write takes several requests, its latency is that of the last one.
func TestTheLastRequestIsTimed(t *testing.T) {
	var s stopwatch
	s.sent()
	s.start = s.start.Add(-time.Hour)
	s.answered()
	if took := s.latency(); took < time.Hour {
		t.Errorf("the first took %v, want an hour", took)
	}
	s.sent()
	s.answered()
	if took := s.latency(); took >= time.Hour {
		t.Errorf("with the first, the second took %v", took)
	}
}
