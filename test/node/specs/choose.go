package specs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Choice says which specs to run.
type Choice struct {
	// All runs the specs that take longer than usual, too.
	All bool
	// Gates are feature gates, off by default, that the cluster has switched on.
	Gates []string
	// Focus, if not nil, matches the names of those to run.
	Focus *regexp.Regexp
}

// Left is a spec that is not run, and why.
type Left struct {
	Spec
	Reason string
}

// Reasons for which a spec is not run.
const (
	reasonLong = "takes more than two minutes"
	reasonGate = "feature gate off"
)

// Choose divides the specs into those to run, in the order in which to start them, and those that are left out. The
// longest come first, so that nothing long is still running when the rest is done. What the focus does not match is in
// neither.
func (c Choice) Choose(all []Spec) (run []Spec, left []Left) {
	for _, s := range all {
		switch {
		case c.Focus != nil && !c.Focus.MatchString(s.Name()):
		case !c.on(s.Gates):
			left = append(left, Left{s, reasonGate})
		case !c.All && takes(s) > usual:
			left = append(left, Left{s, reasonLong})
		default:
			run = append(run, s)
		}
	}
	slices.SortStableFunc(run, func(a, b Spec) int { return cmp.Compare(takes(b), takes(a)) })
	return run, left
}

func (c Choice) on(gates []string) bool {
	return !slices.ContainsFunc(gates, func(g string) bool { return !slices.Contains(c.Gates, g) })
}

// usual is what a spec may take without being asked for. Specs wait beside each other, so that two minutes of one are
// about two minutes of all.
const usual = 2 * time.Minute

// takes is how long the spec may take by what it waits for.
func takes(s Spec) time.Duration { return waits[s.Name()] }

// waits lists the specs whose length does not come from the machine's speed but from what they wait for, at most. A
// CronJob's schedule in them is every minute, so the first run comes within one minute and the second one within two.
var waits = map[string]time.Duration{
	"CronJob should not schedule jobs when suspended":                                 5 * time.Minute,
	"CronJob should schedule multiple jobs concurrently":                              2 * time.Minute,
	"CronJob should replace jobs when ReplaceConcurrent":                              2 * time.Minute,
	"CronJob should not emit unexpected warnings":                                     2 * time.Minute,
	"CronJob should delete successful finished jobs with limit of one successful job": 2 * time.Minute,
	"CronJob should delete failed finished jobs with limit of one job":                2 * time.Minute,
	"CronJob should not schedule new jobs when ForbidConcurrent":                      time.Minute,
	"CronJob should be able to schedule after more than 100 missed schedule":          time.Minute,
	"CronJob should set the cronjob-scheduled-timestamp annotation on a job":          time.Minute,
	"CronJob should remove from active list jobs that have been deleted":              time.Minute,
	"TTLAfterFinished job should be deleted once it finishes after TTL seconds":       45 * time.Second,
}

// fewest is how many specs of the three controllers Kubernetes v1.36 has; later versions have added some.
const fewest = 45

// Check says whether the specs are those that this package was written for: not fewer, and each that is known to be
// long exists.
func Check(all []Spec) error {
	if len(all) < fewest {
		return fmt.Errorf("found %d specs of Jobs, CronJobs and times to live, expected at least %d", len(all), fewest)
	}
	for name := range waits {
		if !slices.ContainsFunc(all, func(s Spec) bool { return s.Name() == name }) {
			return fmt.Errorf("no spec is named %q, of which is known how long it takes", name)
		}
	}
	return nil
}
