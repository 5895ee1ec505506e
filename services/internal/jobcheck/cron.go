package jobcheck

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/internal/cronruns"
)

// reader reads the schedule; nil if it cannot be read. readableSchedule reports that.
func (s *subject) reader() *cronruns.Reader {
	if s.cron == nil {
		return nil
	}
	r, err := cronruns.Read(cronruns.Plan{Schedule: s.cron.Spec.Schedule, Zone: ptr.Deref(s.cron.Spec.TimeZone, "")})
	if err != nil {
		return nil
	}
	return r
}

// everyMinute finds a schedule that chooses hours or days and leaves the minutes open: it runs each minute of them.
func everyMinute(s *subject) {
	f := s.scheduleFields()
	if f == nil || len(f[minutes].Values) < minutesOfHour {
		return
	}
	hourly := len(f[hours].Values) == hoursOfDay
	daily := len(f[daysOfMonth].Values) == 31 && len(f[daysOfWeek].Values) == 7
	switch {
	case !hourly && len(f[hours].Values) <= fewHours:
		s.at(Warning, "spec.schedule", fmt.Sprintf("runs in each minute of hour %s, 60 times an hour: for one run an hour, set the minute", list(f[hours].Values)))
	case hourly && !daily:
		s.at(Note, "spec.schedule", "runs in each minute of the days that it selects, 1440 times a day: for one run a day, set minute and hour")
	}
}

const (
	minutesOfHour = 60
	hoursOfDay    = 24
	// fewHours is how many hours somebody may select who means one run in each. A schedule of office hours may mean each minute.
	fewHours = 4
	// longestStep is the longest step that is given as an interval. Go's durations end at 292 years.
	longestStep = 100_000
)

// widestStep finds a step wider than its field, such as */90 in the minutes: it selects one value only, and the next
// one comes sooner than the step says. A step as wide as its field, such as */60, does what it says, except in the days
// of a month, which has no fixed length.
func widestStep(s *subject) {
	if s.scheduleFields() == nil {
		return
	}
	parts := strings.Fields(s.cron.Spec.Schedule)
	if len(parts) != daysOfWeek+1 { // a macro, or a time zone in front
		return
	}
	for i, unit := range []struct {
		name, begins string
		// widest is the widest step that does what it says.
		widest int
		// An interval in a letter of Go's durations, which have no days. Months have no length.
		times  int
		letter string
	}{{"minutes", "hour", 60, 1, "m"}, {"hours", "day", 24, 1, "h"}, {"days", "month", 30, 24, "h"}, {"months", "year", 12, 0, ""}, {"days", "week", 7, 24, "h"}} {
		for item := range strings.SplitSeq(parts[i], ",") {
			_, step, ok := strings.Cut(item, "/")
			n, err := strconv.Atoi(step)
			if !ok || err != nil || n <= unit.widest {
				continue
			}
			text := fmt.Sprintf("%s does not mean every %d %s: a step begins again with each %s, so it selects one value", item, n, unit.name, unit.begins)
			if unit.times > 0 && n <= longestStep {
				text += fmt.Sprintf("; @every %d%s is such an interval", n*unit.times, unit.letter)
			}
			s.at(Warning, "spec.schedule", text)
		}
	}
}

// interval is the shortest time between two of the next runs; 0: there is none.
func (s *subject) interval() (shortest time.Duration) {
	const looked = 20
	reader := s.reader()
	if reader == nil {
		return 0
	}
	var last time.Time
	for _, run := range reader.Next(clockYear, looked) {
		if d := run.At.Sub(last); run.Change == "" && !last.IsZero() && (shortest == 0 || d < shortest) {
			shortest = d
		}
		if run.Change == "" {
			last = run.At
		}
	}
	return shortest
}

// retriesAndNextRun finds a Job whose retries take longer than the time between two runs.
func retriesAndNextRun(s *subject) {
	if s.cron == nil || s.onFailure() || s.spec.BackoffLimitPerIndex != nil || ptr.Deref(s.spec.Parallelism, 1) != 1 {
		return
	}
	delays, interval := s.delays(), s.interval()
	if d := s.spec.ActiveDeadlineSeconds; interval == 0 || delays <= interval || d != nil && *d <= int64(interval/time.Second) {
		return
	}
	then := "a run that fails still tries when the next ones start"
	switch s.cron.Spec.ConcurrencyPolicy {
	case batchv1.ForbidConcurrent:
		then = "a run that fails keeps the next ones away"
	case batchv1.ReplaceConcurrent:
		then = "the next run replaces one that still tries, which then never shows as failed"
	}
	s.find(Note, "backoffLimit", fmt.Sprintf("is %d: the delays between retries take %s, and runs are %s apart: %s", s.backoffLimit(), simulate.Clock(delays), simulate.Clock(interval), then))
}

// clockYear is the year whose changes of the clock are checked. Any year would do.
var clockYear = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func readableSchedule(s *subject) {
	if s.cron == nil {
		return
	}
	text, zone := s.cron.Spec.Schedule, ptr.Deref(s.cron.Spec.TimeZone, "")
	if strings.Contains(text, "TZ") {
		s.at(Error, "spec.schedule", "must not begin with TZ= or CRON_TZ=; use spec.timeZone")
		return
	}
	empty := s.cron.Spec.TimeZone != nil && zone == ""
	if _, err := cronruns.Read(cronruns.Plan{Schedule: "@daily", Zone: zone}); err != nil || empty {
		s.at(Error, "spec.timeZone", fmt.Sprintf("%q: expected an IANA name such as Europe/Berlin", zone))
		return
	}
	if _, err := cronruns.Read(cronruns.Plan{Schedule: text}); err != nil {
		s.at(Error, "spec.schedule", strings.TrimPrefix(err.Error(), "schedule "))
		return
	}
	if len(s.reader().Next(clockYear, 1)) == 0 {
		s.at(Warning, "spec.schedule", "never comes: no time within five years matches it")
	}
	// The names of POSIX count the hours to UTC, not from it.
	if hours, ok := strings.CutPrefix(zone, "Etc/GMT"); ok && len(hours) > 1 && hours[1:] != "0" {
		where := "ahead of"
		if hours[0] == '+' {
			where = "behind"
		}
		s.at(Note, "spec.timeZone", fmt.Sprintf("%q is %s hours %s UTC: in these names the sign is the other way round", zone, hours[1:], where))
	}
}

func cronFields(s *subject) {
	if s.cron == nil {
		return
	}
	spec := &s.cron.Spec
	for _, p := range wrongFields(spec) {
		s.at(Error, "spec."+p.Path, p.Text)
	}
	if d := spec.StartingDeadlineSeconds; d != nil && *d >= 0 && *d < 10 {
		s.at(Warning, "spec.startingDeadlineSeconds", fmt.Sprintf("is %d: a controller that looks a little late starts no run at all; expected 10 or more", *d))
	} else if d != nil && *d >= 0 && *d < minute && s.interval() >= time.Hour {
		s.at(Note, "spec.startingDeadlineSeconds", fmt.Sprintf("is %d: when the controller is away for so long, as when another replica takes over, a run is left out, and the next one is %s later", *d, simulate.Clock(s.interval())))
	}
}

// minute is how long a new leader of the controllers may take, and more.
const minute = 60

// suspendedRuns finds a CronJob whose Jobs are created suspended, and that names no queue that resumes them.
func suspendedRuns(s *subject) {
	if s.cron == nil || !ptr.Deref(s.spec.Suspend, false) || s.cron.Spec.JobTemplate.Labels[queueLabel] != "" {
		return
	}
	s.find(Warning, "suspend", "is true: each run is created suspended, and stays so until somebody resumes it. To suspend the CronJob, set spec.suspend")
}

// queueLabel names a queue of Kueue, which resumes Jobs.
const queueLabel = "kueue.x-k8s.io/queue-name"

// The positions of a schedule's fields.
const (
	minutes = iota
	hours
	daysOfMonth
	months
	daysOfWeek
)

// scheduleFields are those of the schedule as it is read, so that two texts of one schedule get the
// same findings. None: it is an interval, or cannot be read.
func (s *subject) scheduleFields() []schedule.Field {
	if s.cron == nil {
		return nil
	}
	return schedule.Fields(s.cron.Spec.Schedule)
}

func dayOrWeekday(s *subject) {
	f := s.scheduleFields()
	if f == nil || f[daysOfMonth].Every || f[daysOfWeek].Every {
		return
	}
	days, weekdays := f[daysOfMonth].Values, f[daysOfWeek].Values
	text := fmt.Sprintf("runs on day %s of the month, and on weekday %s besides: when both are set, either is enough; for both, set one and let the command test the other", list(days), list(weekdays))
	if len(days) == 31 || len(weekdays) == 7 {
		text += ", so it runs every day"
	}
	s.at(Warning, "spec.schedule", text)
}

// list writes numbers with ranges: 1-5,8.
func list(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); i++ {
		first := i
		for i+1 < len(numbers) && numbers[i+1] == numbers[i]+1 {
			i++
		}
		part := strconv.Itoa(numbers[first])
		if i > first {
			part += "-" + strconv.Itoa(numbers[i])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

// unevenSteps looks for a step that does not divide its unit: with */7 the last run of an hour
// and the first of the next are 4 minutes apart. Weekdays are left out, because Monday,
// Wednesday and Friday are such a step, and meant.
func unevenSteps(s *subject) {
	f := s.scheduleFields()
	if f == nil {
		return
	}
	days := f[daysOfMonth]
	if days.Every { // then the weekdays decide
		days = f[daysOfWeek]
	}
	for _, unit := range []struct {
		field, within schedule.Field
		name, larger  string
	}{
		{f[minutes], f[hours], "minutes", "hour"},
		{f[hours], days, "hours", "day"},
		{f[daysOfMonth], f[months], "days", "month"},
		{f[months], f[months], "months", "year"},
	} {
		step, last := stepOf(unit.field)
		if step == 0 || step == last || !(inARow(unit.within) || unit.name == "months") {
			continue
		}
		severity := Warning
		if len(unit.field.Values) == 2 {
			severity = Note // two values are often meant
		}
		s.at(severity, "spec.schedule", fmt.Sprintf("the %s %s are %d apart, but %d from the last of one %s to the first of the next", unit.name, list(unit.field.Values), step, last, unit.larger))
	}
}

// stepOf is the distance between the values of a field, and that from the last to the first of
// the next unit. 0: the values are no step that goes through the whole unit.
func stepOf(f schedule.Field) (step, last int) {
	n := len(f.Values)
	if n < 2 {
		return 0, 0
	}
	step = f.Values[1] - f.Values[0]
	for i := 1; i < n; i++ {
		if f.Values[i]-f.Values[i-1] != step {
			return 0, 0
		}
	}
	whole := f.Values[0] < f.Low+step && f.Values[n-1]+step > f.High
	if step < 2 || !whole || n == 2 && f.Values[0] != f.Low {
		return 0, 0
	}
	return step, f.High - f.Low + 1 - f.Values[n-1] + f.Values[0]
}

// inARow reports whether a field selects two values that follow each other.
func inARow(f schedule.Field) bool {
	for i := 1; i < len(f.Values); i++ {
		if f.Values[i] == f.Values[i-1]+1 {
			return true
		}
	}
	n := len(f.Values)
	return n > 1 && f.Values[0] == f.Low && f.Values[n-1] == f.High
}

// choosesHours reports whether an option says what happens when clocks change.
func (s *subject) choosesHours() bool {
	policy, _ := wire.PolicySpec(s.cron.Annotations)
	return policy.GetCronJob().GetRepeatedHour() != 0 || policy.GetCronJob().GetSkippedHour() != 0
}

func clockChanges(s *subject) {
	reader := s.reader()
	if reader == nil || s.cron.Spec.TimeZone == nil || s.choosesHours() {
		return
	}
	// An interval does not follow the clock, and a schedule that runs every hour does not depend
	// on a single run.
	if f := s.scheduleFields(); f == nil || len(f[hours].Values) >= 20 {
		return
	}
	var told []string
	for _, change := range reader.Changes(clockYear, clockYear.AddDate(1, 0, 0)) {
		if text := runsAt(reader, change.At); text != "" && len(told) < 2 {
			told = append(told, text+" ("+change.At.Format("2006-01-02")+")")
		}
	}
	if len(told) > 0 {
		s.at(Warning, "spec.schedule", "a run "+strings.Join(told, ", and one ")+"; choose another hour, or UTC")
	}
}

// runsAt says what a change of the clock does to a run. Empty: nothing.
func runsAt(reader *cronruns.Reader, change time.Time) string {
	const near = 3 * time.Hour // more than a clock is set
	for _, t := range reader.Next(change.Add(-near), int(2*near/time.Minute)) {
		switch {
		case t.At.After(change.Add(near)):
			return ""
		case strings.Contains(t.Change, "is left out"):
			return "is left out when clocks are set forward"
		case strings.Contains(t.Note, "second time"):
			return "comes twice when clocks are set back"
		}
	}
	return ""
}

func missedRuns(s *subject) {
	if s.cron == nil || !cronruns.Suspended(s.cron) || s.cron.Spec.StartingDeadlineSeconds != nil {
		return
	}
	path, is := "spec.suspend", "is true"
	if cronruns.HandedOver(s.cron) {
		path, is = "metadata.annotations", wire.CronJobSuspend+" suspends the CronJob"
	}
	if which := cronruns.PlanOf(s.cron, "").OnResume(); which != "" {
		s.at(Warning, path, is+" without startingDeadlineSeconds: on resume "+which+" at once, however late")
	}
}

func forbidForever(s *subject) {
	if s.cron == nil || s.cron.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		return
	}
	switch {
	case s.spec.ActiveDeadlineSeconds == nil:
		s.at(Warning, "spec.concurrencyPolicy", "is Forbid, and the Job has no activeDeadlineSeconds: one run that never ends, such as a pod that cannot start, keeps all later ones away")
	case s.options.GetJob().GetTerminationDeadlineSeconds() == 0:
		s.at(Note, "spec.concurrencyPolicy", fmt.Sprintf(
			"is Forbid: a run is active until its pods have ended, also after its deadline. A pod on a lost node keeps all later runs away, unless the option job.terminationDeadlineSeconds (annotation %s) of jobpolicy ends the wait", wire.Policy))
	}
}

func aboutOnce(s *subject) {
	if s.cron != nil && s.cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent {
		s.at(Note, "spec.concurrencyPolicy", "is Forbid, which does not promise exactly one run for each time. Of the runs that come due while another one is active, "+cronruns.PlanOf(s.cron, "").AfterActive()+". In rare faults a run starts twice. The work must tolerate both")
	}
}

func pileUp(s *subject) {
	if s.cron == nil || s.spec.ActiveDeadlineSeconds != nil {
		return
	}
	if p := s.cron.Spec.ConcurrencyPolicy; p == "" || p == batchv1.AllowConcurrent {
		s.at(Warning, "spec.concurrencyPolicy", "is Allow, and the Job has no activeDeadlineSeconds: runs that never end, such as pods that cannot start, pile up without limit")
	}
}

func history(s *subject) {
	if s.cron == nil || s.spec.TTLSecondsAfterFinished == nil {
		return
	}
	s.find(Note, "ttlSecondsAfterFinished", "deletes finished runs before the history limits of the CronJob may keep them")
}
