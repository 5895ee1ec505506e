package main

import (
	"strings"
	"testing"

	"jobpolicy.dev/services/internal/testenv"
)

func TestControllersAreChosenAsInTheControllerManager(t *testing.T) {
	cases := map[string]struct {
		names             string
		wantCron, wantTTL bool
		wantErrAbout      string
	}{
		"all":                     {names: "*", wantCron: true, wantTTL: true},
		"all but one":             {names: "*,-cronjob-controller", wantTTL: true},
		"by name":                 {names: "job-controller,cronjob-controller", wantCron: true},
		"the first entry counts":  {names: "-cronjob-controller,cronjob-controller,*", wantTTL: true},
		"one that does not exist": {names: "*,-cron", wantCron: true, wantTTL: true, wantErrAbout: `no controller is called "cron"`},
		"without that of Jobs":    {names: "cronjob-controller", wantCron: true, wantErrAbout: "job-controller cannot be left out"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := controllerOptions{names: strings.Split(tc.names, ","), cronWorkers: 1, ttlWorkers: 1, timeZone: "UTC"}
			if got := o.enabled(cronJobController); got != tc.wantCron {
				t.Errorf("%s: %v, want %v", cronJobController, got, tc.wantCron)
			}
			if got := o.enabled(ttlController); got != tc.wantTTL {
				t.Errorf("%s: %v, want %v", ttlController, got, tc.wantTTL)
			}
			testenv.WantError(t, o.validate(), tc.wantErrAbout)
		})
	}
}

func TestTheTimeZoneMustBeAName(t *testing.T) {
	for zone, want := range map[string]bool{"UTC": true, "Europe/Berlin": true, "": false, "Local": false, "Berlin": false} {
		o := controllerOptions{names: []string{"*"}, cronWorkers: 1, ttlWorkers: 1, timeZone: zone}
		if got := o.validate() == nil; got != want {
			t.Errorf("zone %q is taken: %v, want %v", zone, got, want)
		}
	}
}
