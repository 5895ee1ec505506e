package clock

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWallTimeHasNoMonotonicReading(t *testing.T) {
	for name, now := range map[string]func() time.Time{"default": nil, "given": time.Now} {
		if got := New(now)().String(); strings.Contains(got, "m=") {
			t.Errorf("%s: %s has a monotonic reading", name, got)
		}
	}
}

// Setting the clock does not change the length of a wait.
func TestAWaitIsNoLongerOnAClockThatWasSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(10 * time.Second)
		time.Sleep(4 * time.Second)
		for _, set := range []time.Duration{0, -time.Hour, time.Hour} {
			now := time.Now().Add(set).Round(0)
			if left := time.Until(MomentOf(now.Add(time.Minute), now)); left != time.Minute {
				t.Errorf("clock set by %v: a minute ahead is %v of elapsed time", set, left)
			}
			if left := WallOf(end, now).Sub(now); left != 6*time.Second {
				t.Errorf("clock set by %v: %v left, want 6s", set, left)
			}
		}
	})
}
