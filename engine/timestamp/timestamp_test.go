package timestamp

import (
	"testing"
	"time"
)

func TestNoTimeIsLaterThanTheLast(t *testing.T) {
	cases := map[string]struct{ at, want time.Time }{
		"the last is valid":       {Last, Last},
		"one later is the last":   {Last.Add(1), Last},
		"centuries later is, too": {Last.Add(1<<63 - 1), Last},
		"one earlier stays":       {Last.Add(-1), Last.Add(-1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Of(tc.at)
			if err := got.CheckValid(); err != nil || !got.AsTime().Equal(tc.want) {
				t.Errorf("Of(%v) = %v (%v), want %v", tc.at, got.AsTime(), err, tc.want)
			}
		})
	}
}
