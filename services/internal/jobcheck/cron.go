package jobcheck

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

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

// clockYear is the year whose changes of the clock are checked. Any year would do.
var clockYear = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func readableSchedule(s *subject) {
	if s.cron == nil {
		return
	}
	schedule, zone := s.cron.Spec.Schedule, ptr.Deref(s.cron.Spec.TimeZone, "")
	if strings.Contains(schedule, "TZ=") {
		s.at(Error, "spec.schedule", "must not begin with TZ= or CRON_TZ=; use spec.timeZone")
		return
	}
	empty := s.cron.Spec.TimeZone != nil && zone == ""
	if _, err := cronruns.Read(cronruns.Plan{Schedule: "@daily", Zone: zone}); err != nil || empty {
		s.at(Error, "spec.timeZone", fmt.Sprintf("%q: expected an IANA name such as Europe/Berlin", zone))
		return
	}
	if _, err := cronruns.Read(cronruns.Plan{Schedule: schedule}); err != nil {
		s.at(Error, "spec.schedule", strings.TrimPrefix(err.Error(), "schedule "))
		return
	}
	if len(s.reader().Next(clockYear, 1)) == 0 {
		s.at(Warning, "spec.schedule", fmt.Sprintf("%q never comes", schedule))
	}
}

func cronFields(s *subject) {
	if s.cron == nil {
		return
	}
	spec := &s.cron.Spec
	switch spec.ConcurrencyPolicy {
	case "", batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent:
	default:
		s.at(Error, "spec.concurrencyPolicy", fmt.Sprintf("%q: expected Allow, Forbid or Replace", spec.ConcurrencyPolicy))
	}
	if d := spec.StartingDeadlineSeconds; d != nil && *d < 0 {
		s.at(Error, "spec.startingDeadlineSeconds", fmt.Sprintf("must be 0 or more, is %d", *d))
	}
	if d := spec.StartingDeadlineSeconds; d != nil && *d >= 0 && *d < 10 {
		s.at(Warning, "spec.startingDeadlineSeconds", fmt.Sprintf("is %d: a controller that looks a little late starts no run at all; expected 10 or more", *d))
	}
	for _, limit := range []struct {
		field string
		value *int32
	}{{"successfulJobsHistoryLimit", spec.SuccessfulJobsHistoryLimit}, {"failedJobsHistoryLimit", spec.FailedJobsHistoryLimit}} {
		if limit.value != nil && *limit.value < 0 {
			s.at(Error, "spec."+limit.field, fmt.Sprintf("must be 0 or more, is %d", *limit.value))
		}
	}
}

func dayOrWeekday(s *subject) {
	if s.cron == nil {
		return
	}
	fields := strings.Fields(s.cron.Spec.Schedule)
	free := func(field string) bool { return field == "*" || field == "?" || strings.HasPrefix(field, "*/") }
	if len(fields) == 5 && !free(fields[2]) && !free(fields[4]) {
		s.at(Warning, "spec.schedule", fmt.Sprintf("runs on day %s of the month, and on weekday %s besides: when both are set, either is enough", fields[2], fields[4]))
	}
}

func clockChanges(s *subject) {
	reader := s.reader()
	if reader == nil || s.cron.Spec.TimeZone == nil || s.cron.Annotations["jobpolicy.dev/dst-repeated-hour"] != "" || s.cron.Annotations["jobpolicy.dev/dst-skipped-hour"] != "" {
		return
	}
	// A schedule that runs every hour does not depend on a single run.
	if reader.Count(clockYear, clockYear.AddDate(0, 0, 1)) >= 20 {
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
	s.at(Warning, path, is+" without startingDeadlineSeconds: on resume the latest missed run starts at once, however late")
}

func forbidForever(s *subject) {
	if s.cron != nil && s.cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && s.spec.ActiveDeadlineSeconds == nil {
		s.at(Warning, "spec.concurrencyPolicy", "is Forbid, and the Job has no activeDeadlineSeconds: one run that never ends, such as a pod that cannot start, keeps all later ones away")
	}
}

func aboutOnce(s *subject) {
	if s.cron != nil && s.cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent {
		s.at(Note, "spec.concurrencyPolicy", "is Forbid, which does not promise exactly one run for each time. Of the runs that come due while another one is active, at most the latest starts afterwards. In rare faults a run starts twice. The work must tolerate both")
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
