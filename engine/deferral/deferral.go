// Package deferral reads the steps that a caller asks the engine to leave for later
// (Deferral in the contract).
package deferral

import (
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// MaxEntries is how many deferrals a request may have.
const MaxEntries = 100

// Until returns the earliest time at which the caller wants the step. asked is false
// if the caller did not defer the step.
func Until(deferrals []*jobpolicyv1.Deferral, step jobpolicyv1.Step) (until time.Time, asked bool) {
	for _, d := range deferrals {
		if d.GetStep() == step {
			return d.GetUntil().AsTime(), true
		}
	}
	return time.Time{}, false
}

// Check calls violated for each rule of the contract that the list breaks. field is
// relative to the entry with that index; an empty field is the entry itself.
func Check(deferrals []*jobpolicyv1.Deferral, violated func(index int, field, text string)) {
	seen := map[jobpolicyv1.Step]bool{}
	for i, d := range deferrals {
		switch {
		case d.GetStep() == jobpolicyv1.Step_STEP_UNSPECIFIED:
			violated(i, "step", "is required")
		case seen[d.GetStep()]:
			violated(i, "step", "is also that of an earlier entry")
		}
		seen[d.GetStep()] = true
		switch {
		case d.GetUntil() == nil:
			violated(i, "until", "is required")
		case !d.GetUntil().IsValid():
			violated(i, "until", "must be a time between the years 1 and 9999")
		}
	}
}
