package main

import (
	"strings"
	"testing"
	"time"
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
		"the defaults": {func(*electionOptions) {}, ""},
		"a lease that ends before the leader gives up": {func(o *electionOptions) { o.leaseDuration = 10 * time.Second }, "--leader-elect-renew-deadline"},
		"a lease below a second":                       {func(o *electionOptions) { o.leaseDuration = time.Millisecond }, "--leader-elect-lease-duration"},
		"no time between two tries":                    {func(o *electionOptions) { o.retryPeriod = 0 }, "--leader-elect-retry-period"},
		"no time for a second try":                     {func(o *electionOptions) { o.retryPeriod = 9 * time.Second }, "--leader-elect-retry-period"},
		"no name":                                      {func(o *electionOptions) { o.name = "" }, "--leader-elect-resource-name"},
		"a warm standby":                               {func(o *electionOptions) { o.warm = true }, ""},
		"a warm standby without an election":           {func(o *electionOptions) { o.enabled, o.warm = false, true }, "--warm-standby"},
		"nonsense that is not used":                    {func(o *electionOptions) { *o = electionOptions{} }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := valid
			tc.change(&o)
			err := o.validate()
			if tc.want == "" && err != nil {
				t.Errorf("validate() = %v, want nil", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("validate() = %v, want an error that names %s", err, tc.want)
			}
		})
	}
}
