package cronjob

import (
	"jobpolicy.dev/engine/schedule"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// optionsLost reports whether the options that the CronJob asks for cannot be read, and the caller
// does not know the last ones that could be.
func (s *snapshot) optionsLost() bool { return len(s.spec.GetOptionProblems()) > 0 && s.options == nil }

// ClockOptions are the options for clock changes.
func ClockOptions(o *jobpolicyv1.CronJobOptions) schedule.Options {
	var clock schedule.Options
	switch o.GetRepeatedHour() {
	case jobpolicyv1.RepeatedHour_REPEATED_HOUR_FIRST:
		clock.RepeatedHour = schedule.First
	case jobpolicyv1.RepeatedHour_REPEATED_HOUR_LAST:
		clock.RepeatedHour = schedule.Last
	}
	if o.GetSkippedHour() == jobpolicyv1.SkippedHour_SKIPPED_HOUR_RUN_AFTER {
		clock.SkippedHour = schedule.RunAfter
	}
	return clock
}
