package cronjob

import (
	"fmt"
	"hash/fnv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/engine/timestamp"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A due says what the schedule asks for at the decision's time.
type due struct {
	// after is the time after which runs are due: that of the last run, or the creation
	// of the CronJob, or the last edit of its schedule.
	after time.Time
	// at is the time of the run to start: the latest due time since then, or, with
	// max_missed_runs, an earlier one. Zero if there is none.
	at time.Time
	// later is how many due times after at start, too.
	later int64
	// start is at with its delay.
	start time.Time
	delay StartDelay
	// delayed is the latest due time while it waits for its delay, also if at is an earlier one; else zero.
	delayed time.Time
	// times is how many due times there are since then, including at.
	times int64
	// next is the schedule's first time after all due times. If there are none, it is the
	// first time that is later than the field after. Zero if there is none.
	next time.Time
	// observed records an edit of the schedule; nil if nothing new has to be recorded.
	observed *jobpolicyv1.ObservedSchedule
}

// takeDue asks the schedule, which must be readable.
func takeDue(s *snapshot, r runs) due {
	after := s.spec.GetCreationTime().AsTime()
	if r.lastScheduled != nil {
		after = r.lastScheduled.AsTime()
	}
	var observed *jobpolicyv1.ObservedSchedule
	if s.options.GetMissedBeforeEdit() == jobpolicyv1.MissedBeforeEdit_MISSED_BEFORE_EDIT_SKIP {
		after, observed = skipBeforeEdit(s, r, after)
	}
	d := s.dueAfter(after, s.now)
	d.observed = observed
	if d.at.IsZero() {
		return d
	}
	d = s.delayed(d, d.next)
	if d.start.After(s.now) {
		d.delayed = d.at
	}
	return s.catchUp(d)
}

// delayed adds its delay to a time that is due. next is the schedule's next time.
func (s *snapshot) delayed(d due, next time.Time) due {
	d.delay = StartDelayOf(s.req.GetCronJob(), s.options, d.at, next)
	d.start = d.at.Add(d.delay.Total())
	return d
}

// skipBeforeEdit skips the times before the last edit of the schedule. The engine
// cannot see the edit itself, only that the schedule differs from the observed one;
// the first decision that sees this counts as the time of the edit. A new CronJob
// without an observed schedule has not been edited. observed is nil if nothing new has
// to be recorded.
func skipBeforeEdit(s *snapshot, r runs, after time.Time) (from time.Time, observed *jobpolicyv1.ObservedSchedule) {
	last := s.spec.GetObservedSchedule()
	edited := last.GetSince().AsTime()
	// An edit in the future was seen while the clock was ahead.
	if last.GetSchedule() != s.scheduleSeen() || edited.After(s.now) {
		isNew := last == nil && r.lastScheduled == nil && s.isRecent(after)
		edited = s.now.Truncate(time.Second)
		if isNew {
			edited = after
		}
		observed = &jobpolicyv1.ObservedSchedule{Since: timestamppb.New(edited.Truncate(time.Second)), Schedule: s.scheduleSeen()}
	}
	if edited.After(after) {
		after = edited
	}
	return after, observed
}

// laterText says how many missed runs start after this one, if any do.
func (d due) laterText() string {
	if d.later == 0 {
		return ""
	}
	return fmt.Sprintf("; later ones that were due and start, too: %d", d.later)
}

// deadline is spec.startingDeadlineSeconds. Whole seconds count: a run with a
// deadline of 0 may start within the second that it is due in.
func (s *snapshot) deadline() (seconds int64, has bool) {
	return max(0, s.spec.GetStartingDeadlineSeconds()), s.spec.StartingDeadlineSeconds != nil
}

// tooLate reports whether the run may not start any more.
func (s *snapshot) tooLate(d due) bool {
	seconds, has := s.deadline()
	return has && s.now.Unix()-d.start.Unix() > seconds
}

// startDeadline is the first time at which the run is too late to start; ok is false if it never
// is.
func (s *snapshot) startDeadline(d due) (at time.Time, ok bool) {
	seconds, has := s.deadline()
	const forEver = 1 << 40
	if !has || seconds > forEver {
		return time.Time{}, false
	}
	return time.Unix(d.start.Unix()+seconds+1, 0).UTC(), true
}

// manyMissed reports whether more times were missed than is normal for a CronJob.
// Times whose starting deadline has passed do not count.
func (s *snapshot) manyMissed(d due) bool {
	if d.times <= schedule.CountLimit {
		return false
	}
	seconds, has := s.deadline()
	after := time.Unix(s.now.Unix()-seconds, 0).UTC()
	if !has || !after.After(d.after) {
		return true
	}
	return s.schedule.Count(after, s.now) > schedule.CountLimit
}

// A run is a run to be started.
type run struct {
	name string
	// scheduled is nil for a manual run.
	scheduled *timestamppb.Timestamp
	// utcOffset is how far the schedule's zone is ahead of UTC at that time, in seconds.
	utcOffset int32
	// runNow is the text that asked for a manual run.
	runNow string
}

func (s *snapshot) scheduledRun(at time.Time) run {
	shown := at.In(s.zone)
	if shown.Year() > timestamp.Last.Year() { // RFC 3339 has no such years.
		shown = at.UTC()
	}
	_, offset := shown.Zone()
	return run{name: s.scheduledName(at), scheduled: timestamppb.New(at), utcOffset: int32(offset)}
}

// scheduledName is upstream's name (getJobName, v1.37), so that neither controller
// starts a run that the other has started.
func (s *snapshot) scheduledName(at time.Time) string {
	return fmt.Sprintf("%s-%d", s.req.GetCronJob().GetName(), at.Unix()/60)
}

// manualRun is the run that spec.run_now asks for.
func (s *snapshot) manualRun() run {
	return run{name: s.req.GetCronJob().GetName() + "-run-" + shortHash(s.spec.GetRunNow()), runNow: s.spec.GetRunNow()}
}

// shortHash has 6 characters, so that even with the longest name of a CronJob the
// Job's name has at most 63. It has no vowels, so it spells no words.
func shortHash(text string) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	sum := h.Sum64()
	hash := make([]byte, 6)
	for i := range hash {
		hash[i] = alphabet[sum%uint64(len(alphabet))]
		sum /= uint64(len(alphabet))
	}
	return string(hash)
}

func (r run) message() *jobpolicyv1.CreateJob {
	return &jobpolicyv1.CreateJob{Name: r.name, ScheduledTime: proto.CloneOf(r.scheduled), UtcOffsetSeconds: r.utcOffset, RunNow: r.runNow}
}
