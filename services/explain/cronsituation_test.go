package explain

import "testing"

func TestClockOfADeadlineThatNoDurationHolds(t *testing.T) {
	for seconds, want := range map[int64]string{
		0: "0s", 90: "1m30s", 9_223_372_036: "106751d23h47m16s",
		9_223_372_037: "9223372037 seconds", 1 << 54: "18014398509481984 seconds",
	} {
		if got := clock(seconds); got != want {
			t.Errorf("clock(%d) = %s, want %s", seconds, got, want)
		}
	}
}
