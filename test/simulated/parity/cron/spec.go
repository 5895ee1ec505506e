package cron

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

var (
	schedules = []string{
		"* * * * *", "* * * * *", "*/5 * * * *", "0 * * * *", "@hourly", "30 6-16/4 * * 1-5", "0 0 * * *", "@daily", "15 2 * * SUN",
		"0 9 1 * *", "@every 90s", "@every 1h30m", "59 23 31 2 *", "10,40 8-18 * JAN-DEC MON-FRI", "0 0 29 2 *",
	}
	zones = []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/UTC", "Australia/Lord_Howe"}
)

// In these zones, the times of these schedules are not all equally far apart: when the clocks
// change, a day is an hour, or half an hour, longer or shorter.
var (
	daily    = []string{"0 0 * * *", "@daily", "15 2 * * SUN"}
	changing = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}
)

// mark records whether the life has a schedule whose runs are not all equally far apart, or
// one that the built-in controller counts from its deadline.
func (l *life) mark(schedule, zone string) {
	l.every = l.every || strings.HasPrefix(schedule, "@every")
	l.daily = l.daily || slices.Contains(daily, schedule)
	l.changing = l.changing || slices.Contains(changing, zone)
	l.irregular = l.irregular || l.every || l.daily && l.changing ||
		slices.Contains([]string{"30 6-16/4 * * 1-5", "10,40 8-18 * JAN-DEC MON-FRI", "0 9 1 * *", "0 0 29 2 *"}, schedule)
}

func (l *life) newSpec() *batchv1.CronJobSpec {
	spec := jobspec.Source{Rand: l.Rand}.Cron(pick(l, schedules...))
	spec.JobTemplate.Annotations = map[string]string{"also": "template"}
	if l.chance(40) {
		spec.TimeZone = new(pick(l, zones...))
		l.mark("", *spec.TimeZone)
	}
	l.mark(spec.Schedule, "")
	if seconds := spec.StartingDeadlineSeconds; seconds != nil {
		l.hasty = *seconds == 0
	}
	if l.chance(10) {
		spec.Suspend = new(true)
	}
	return &spec
}
