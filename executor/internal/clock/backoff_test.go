package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheDelayDoublesUpToItsLimit(t *testing.T) {
	cases := map[string]struct {
		limits Limits
		want   []time.Duration
	}{
		"a minute":                     {Limits{time.Second, 10 * time.Second}, []time.Duration{1e9, 2e9, 4e9, 8e9, 10e9, 10e9, 10e9}},
		"the first is the limit":       {Limits{time.Second, time.Second}, []time.Duration{1e9, 1e9, 1e9}},
		"the first is above the limit": {Limits{time.Minute, time.Second}, []time.Duration{1e9, 1e9, 1e9}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var b Backoff
			var got []time.Duration
			for range tc.want {
				got = append(got, b.Failed(tc.limits))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("delays (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABackoffEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{time.Second, time.Minute}
		var b Backoff
		if b.Failing() || b.Active() || !b.Until().IsZero() {
			t.Errorf("before any failure: %+v", b)
		}
		b.Failed(limits)
		if !b.Failing() || !b.Active() {
			t.Errorf("after a failure: %+v", b)
		}
		time.Sleep(time.Second)
		if !b.Failing() || b.Active() {
			t.Errorf("after its delay: %+v", b)
		}
		b.Failed(limits)
		b.Progressed()
		if b.Failing() || !b.Active() {
			t.Errorf("after progress: %+v", b)
		}
		if delay := b.Failed(limits); delay != time.Second {
			t.Errorf("the first delay after progress is %v, want 1s", delay)
		}
		if delay := b.FailedForLong(limits); delay != time.Minute || time.Until(b.Until()) != time.Minute {
			t.Errorf("the longest delay is %v until %v, want 1m", delay, b.Until())
		}
		if delay := b.Shorten(time.Hour); delay != time.Minute {
			t.Errorf("a minute is shortened to an hour: %v", delay)
		}
		if delay := b.Shorten(time.Second); delay != time.Second || time.Until(b.Until()) != time.Second {
			t.Errorf("a minute is shortened to a second: %v, until %v", delay, b.Until())
		}
		if delay := b.Failed(limits); delay != 4*time.Second {
			t.Errorf("the delay after a shortened one is %v, want 4s", delay)
		}
		b.Reset()
		if b != (Backoff{}) {
			t.Errorf("after a success: %+v", b)
		}
		if delay := b.Shorten(time.Second); delay != 0 {
			t.Errorf("a delay that a success has ended is shortened to %v, want 0", delay)
		}
	})
}
