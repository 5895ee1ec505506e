package main

import (
	"testing"
	"time"

	"jobpolicy.dev/services/internal/testenv"
)

func TestElectionOptionsAreCheckedByFlag(t *testing.T) {
	valid := electionOptions{
		enabled: true, leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second, retryPeriod: 2 * time.Second,
		namespace: "kube-system", name: "x",
	}
	cases := map[string]struct {
		change func(*electionOptions)
		want   string // empty: valid
	}{
		"the defaults": {change: func(*electionOptions) {}, want: ""},
		"a lease that ends before the leader gives up": {
			change: func(o *electionOptions) { o.leaseDuration = 10 * time.Second },
			want:   "--leader-elect-renew-deadline",
		},
		"a lease that in whole seconds ends before the leader gives up": {
			change: func(o *electionOptions) {
				o.leaseDuration, o.renewDeadline = 10900*time.Millisecond, 10800*time.Millisecond
			},
			want: "--leader-elect-lease-duration (10s, in whole seconds)",
		},
		"a lease below a second": {
			change: func(o *electionOptions) { o.leaseDuration = time.Millisecond },
			want:   "--leader-elect-lease-duration",
		},
		"no time between two tries": {
			change: func(o *electionOptions) { o.retryPeriod = 0 },
			want:   "--leader-elect-retry-period",
		},
		"no time for a second try": {
			change: func(o *electionOptions) { o.retryPeriod = 9 * time.Second },
			want:   "--leader-elect-retry-period",
		},
		"no name": {
			change: func(o *electionOptions) { o.name = "" },
			want:   "--leader-elect-resource-name",
		},
		"a warm standby": {change: func(o *electionOptions) { o.warm = true }, want: ""},
		"a warm standby without an election": {
			change: func(o *electionOptions) { o.enabled, o.warm = false, true },
			want:   "--warm-standby",
		},
		"nonsense that is not used": {change: func(o *electionOptions) { *o = electionOptions{} }, want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := valid
			tc.change(&o)
			testenv.WantError(t, o.validate(), tc.want)
		})
	}
}
