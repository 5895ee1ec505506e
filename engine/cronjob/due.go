package cronjob

import (
	"fmt"
	"hash/fnv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/annotation"
	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/engine/timestamp"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A due says what the schedule asks for at the decision's time.
type due struct {
	// after is what the schedule is asked from: the last run, or the creation of
	// the CronJob, or the last edit of its schedule.
	after time.Time
	// at is the latest time since then, unless it is zero.
	at time.Time
	// start is at with its jitter.
	start time.Time
	// times is how many there are since then, at included.
	times int64
	// next is the one after at, or after after; zero if there is none.
	next time.Time
	// observed is what is to be kept of the schedule's edit; empty if nothing is.
	observed string
}

// takeDue asks the schedule, which must have been read.
func takeDue(s *snapshot, r runs) due {
	after, observed := s.spec.GetCreationTime().AsTime(), ""
	if r.lastScheduled != nil {
		after = r.lastScheduled.AsTime()
	}
	if s.opts.skipMissed {
		after, observed = skipBeforeEdit(s, r, after)
	}
	d := s.dueAfter(after, s.now)
	d.observed = observed
	if !d.at.IsZero() {
		d.start = d.at.Add(jitter(s, d))
	}
	return d
}

// skipBeforeEdit begins anew at the last edit of the schedule. The edit itself
// cannot be seen, but that the schedule is another than before, at the first
// look. Where no schedule was observed yet, a CronJob that is new has not been
// edited. What is to be kept of the edit is empty if nothing is.
func skipBeforeEdit(s *snapshot, r runs, after time.Time) (from time.Time, observed string) {
	edited := s.opts.observed.since
	// An edit that is yet to come was seen while the clock was ahead.
	if s.opts.observed.schedule != s.scheduleSeen() || edited.IsZero() || edited.After(s.now) {
		isNew := s.opts.observed.since.IsZero() && r.lastScheduled == nil && s.isNews(after)
		edited = s.now.Truncate(time.Second)
		if isNew {
			edited = after
		}
		observed = edited.Format(time.RFC3339) + " " + s.scheduleSeen()
	}
	if edited.After(after) {
		after = edited
	}
	return after, observed
}

// jitter is how much later than scheduled a run starts: anything up to what the
// CronJob asks for, always the same for the same run, and never so much that the
// next run is due before, nor the calendar ends.
func jitter(s *snapshot, d due) time.Duration {
	most := min(s.opts.startJitter, timestamp.Last.Unix()-d.at.Unix())
	if !d.next.IsZero() {
		most = min(most, d.next.Unix()-d.at.Unix()-1)
	}
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(s.req.GetCronJob().GetUid()) // never fails
	_, _ = fmt.Fprintf(h, " %d", d.at.Unix())
	return time.Duration(h.Sum64()%uint64(most+1)) * time.Second
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

// lastChance is the first time at which the run may not start any more.
func (s *snapshot) lastChance(d due) (time.Time, bool) {
	seconds, has := s.deadline()
	const forEver = 1 << 40
	if !has || seconds > forEver {
		return time.Time{}, false
	}
	return time.Unix(d.start.Unix()+seconds+1, 0).UTC(), true
}

// manyMissed reports whether more times were missed than a CronJob misses when
// all is well. Those that could not start any more do not count.
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

// A run is one that is to be started.
type run struct {
	name string
	// scheduled is absent for a run that was asked for.
	scheduled   *timestamppb.Timestamp
	annotations map[string]string
}

func (s *snapshot) scheduledRun(at time.Time) run {
	shown := at.In(s.zone)
	if shown.Year() > timestamp.Last.Year() { // RFC 3339 cannot say it.
		shown = at.UTC()
	}
	return run{
		name:        s.scheduledName(at),
		scheduled:   timestamppb.New(at),
		annotations: map[string]string{annotationScheduledTime: shown.Format(time.RFC3339)},
	}
}

// scheduledName is upstream's (getJobName, v1.36), so that a run that either
// controller started is never started by the other one.
func (s *snapshot) scheduledName(at time.Time) string {
	return fmt.Sprintf("%s-%d", s.req.GetCronJob().GetName(), at.Unix()/60)
}

// askedRun is the run that annotation.RunNow asks for.
func (s *snapshot) askedRun() run {
	return run{
		name:        s.req.GetCronJob().GetName() + "-run-" + shortHash(s.opts.runNow),
		annotations: map[string]string{annotation.RunNow: s.opts.runNow, annotationInstantiate: instantiateManually},
	}
}

// shortHash has 6 characters, so that with the longest name of a CronJob a Job's
// name keeps to 63. It has no vowels and spells no words.
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
	return &jobpolicyv1.CreateJob{Name: r.name, ScheduledTime: proto.CloneOf(r.scheduled), Annotations: r.annotations}
}
