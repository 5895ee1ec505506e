package hostnode

import (
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

func TestCrashBackoffDelays(t *testing.T) {
	cases := map[string]struct {
		// runs are how long each run of the container lasts.
		runs []time.Duration
		want []time.Duration
	}{
		"the first restart is immediate and the delays double from base to max": {
			runs: []time.Duration{0, 0, 0, 0, 0, 0, 0},
			want: []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 100 * time.Second, 100 * time.Second},
		},
		"a run of twice max is not yet long enough to start over": {
			runs: []time.Duration{0, 0, 200 * time.Second},
			want: []time.Duration{0, 10 * time.Second, 20 * time.Second},
		},
		"a run of more than twice max starts over": {
			runs: []time.Duration{0, 0, 0, 201 * time.Second, 0, 0},
			want: []time.Duration{0, 10 * time.Second, 20 * time.Second, 0, 10 * time.Second, 20 * time.Second},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := crashBackoff{base: 10 * time.Second, max: 100 * time.Second}
			now := time.Unix(1000, 0)
			var got []time.Duration
			for _, run := range tc.runs {
				finished := now.Add(run)
				now = b.until(finished)
				got = append(got, now.Sub(finished))
				b.restart(finished, now)
			}
			must.Equal(t, "delays", tc.want, got)
		})
	}
}
