// Package cronruns says when the runs of a schedule come, and what changes of the
// clock do to them.
package cronruns

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/engine/zone"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A Plan is the schedule of a CronJob, with its zone and options.
type Plan struct {
	// Schedule may begin with TZ= or CRON_TZ=, as the built-in controller reads it.
	Schedule string
	// Zone is the IANA name of spec.timeZone, or of the zone of a controller that
	// reads schedules without one. Empty: UTC.
	Zone    string
	Options schedule.Options
	// Delay is how much later than due a run starts; next is when the next one is due. nil: no
	// run starts later.
	Delay func(at, next time.Time) time.Duration
	// MissedRuns is how many of the runs that were missed start.
	MissedRuns int
}

// PlanOf is the plan of a CronJob, with the options that it asks for. otherwise is the
// zone of a schedule that names none.
func PlanOf(cron *batchv1.CronJob, otherwise string) Plan {
	policy, _ := wire.PolicySpec(cron.Annotations)
	p := Plan{Schedule: cron.Spec.Schedule, Zone: otherwise, Options: cronjob.ClockOptions(policy.GetCronJob())}
	p.MissedRuns = cronjob.MaxMissedRuns(policy.GetCronJob(), cron.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent)
	if cron.Spec.TimeZone != nil {
		p.Zone = *cron.Spec.TimeZone
	}
	if o := policy.GetCronJob(); o.GetStaggerSeconds() > 0 || o.GetStartJitterSeconds() > 0 {
		p.Delay = delayOf(cron, o)
	}
	return p
}

// delayOf delays by stagger and jitter; by stagger alone if the CronJob is in no cluster, as
// jitter depends on its UID.
func delayOf(cron *batchv1.CronJob, o *jobpolicyv1.CronJobOptions) func(at, next time.Time) time.Duration {
	uid, err := wire.UIDBytes(cron.UID)
	ref := &jobpolicyv1.CronJobRef{Uid: uid, Namespace: cron.Namespace, Name: cron.Name}
	return func(at, next time.Time) time.Duration {
		d := cronjob.StartDelayOf(ref, o, at, next)
		if err != nil {
			return d.Stagger
		}
		return d.Total()
	}
}

// A Time is a run, or a change of the clock.
type Time struct {
	At time.Time `json:"at"`
	// Starts is when the run starts, if that is later than At.
	Starts *time.Time `json:"starts,omitempty"`
	// Change is set for a change of the clock, and says which.
	Change string `json:"clockChange,omitempty"`
	// Note says if something about a run is unusual.
	Note string `json:"note,omitempty"`
}

// A Reader computes the times of one plan.
type Reader struct {
	runs schedule.Schedule
	// after is the same schedule, in which a run replaces those that a clock skips.
	after schedule.Schedule
	loc   *time.Location
	// interval: the times of the schedule (@every) count from each other, so from the last run.
	interval bool
	last     time.Time
	delay    func(at, next time.Time) time.Duration
}

// From returns a Reader for a CronJob whose last run, or creation, is known. The runs of an
// interval (@every) count from it; those of other schedules do not depend on it.
func (r *Reader) From(last time.Time) *Reader {
	from := *r
	from.last = last
	return &from
}

// Read reads a plan. The error names what is wrong.
func Read(p Plan) (*Reader, error) {
	loc, err := zone.Load(clockOf(p))
	if err != nil {
		return nil, fmt.Errorf("time zone %q: expected an IANA name such as Europe/Berlin: %w", p.Zone, err)
	}
	r := &Reader{loc: loc, interval: strings.Contains(p.Schedule, "@every "), delay: p.Delay}
	if r.runs, err = schedule.Parse(p.Schedule, loc, p.Options); err != nil {
		if wrong := wrongFields(p.Schedule); wrong != nil {
			return nil, fmt.Errorf("schedule %q: %w", p.Schedule, wrong)
		}
		return nil, fmt.Errorf("schedule %q: expected five fields such as \"30 2 * * 1-5\", a macro such as @daily, or @every 6h: %w", p.Schedule, err)
	}
	late := p.Options
	late.SkippedHour = schedule.RunAfter
	r.after, err = schedule.Parse(p.Schedule, loc, late)
	return r, err
}

// clockOf is the zone in which a plan's times are shown: that at the beginning of the
// schedule, or else that of the plan.
func clockOf(p Plan) string {
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if rest, ok := strings.CutPrefix(p.Schedule, prefix); ok {
			name, _, _ := strings.Cut(rest, " ")
			return name
		}
	}
	return p.Zone
}

// Next lists n runs after a time, with the changes of the clock between them. Fewer
// runs mean that there are no more within five years.
func (r *Reader) Next(after time.Time, n int) []Time {
	var out []Time
	last := after
	if r.interval && !r.last.IsZero() {
		last = r.Latest(r.last, after)
	}
	for range n {
		at, ok := r.runs.Next(last)
		if !ok {
			break
		}
		out = append(out, r.Changes(last, at)...)
		out = append(out, r.run(at))
		last = at
	}
	return slices.DeleteFunc(out, func(t Time) bool { return !t.At.After(after) })
}

// Count counts the runs after one time and up to another.
func (r *Reader) Count(after, until time.Time) int64 {
	if !r.interval || r.last.IsZero() || !after.Before(until) {
		return r.runs.Count(after, until)
	}
	return r.runs.Count(r.last, until) - r.runs.Count(r.last, after)
}

// Latest is the last run after one time and up to another, or the former if there is none.
func (r *Reader) Latest(after, until time.Time) time.Time {
	if last, ok := r.runs.Last(after, until); ok {
		return last
	}
	return after
}

// Start is when a run starts that is due at a time.
func (r *Reader) Start(at time.Time) time.Time {
	if r.delay == nil {
		return at
	}
	next, _ := r.runs.Next(at)
	return at.Add(r.delay(at, next))
}

func (r *Reader) run(at time.Time) Time {
	t := Time{At: at.In(r.loc)}
	if starts := r.Start(at); starts.After(at) {
		t.Starts = new(starts.In(r.loc))
	}
	_, offset := t.At.Zone()
	start, end := t.At.ZoneBounds()
	if !start.IsZero() {
		if _, before := start.Add(-time.Second).Zone(); before > offset && t.At.Sub(start) < time.Duration(before-offset)*time.Second {
			t.Note = "the clock shows this time for the second time"
		}
	}
	if !end.IsZero() {
		if _, later := end.Zone(); later < offset && end.Sub(t.At) <= time.Duration(offset-later)*time.Second {
			t.Note = "the clock shows this time twice, this is the first time"
		}
	}
	return t
}

// Zone is the zone in which times are shown.
func (r *Reader) Zone() *time.Location { return r.loc }

// Changes are the changes of the clock after one time and up to another.
func (r *Reader) Changes(after, until time.Time) []Time {
	var out []Time
	for at := after.In(r.loc); ; {
		_, end := at.ZoneBounds()
		// Beyond the zone's list of changes, package time may name the end of a year,
		// or the time itself, as a bound.
		for !end.IsZero() && !end.After(at) {
			at = at.Add(24 * time.Hour)
			_, end = at.ZoneBounds()
		}
		if end.IsZero() || end.After(until) {
			return out
		}
		if changesClock(end) {
			out = append(out, Time{At: end, Change: r.change(end)})
		}
		at = end
	}
}

// changesClock reports whether the offset or the name of the zone changes at that time.
func changesClock(at time.Time) bool {
	before, from := at.Add(-time.Second).Zone()
	name, to := at.Zone()
	return before != name || from != to
}

func (r *Reader) change(at time.Time) string {
	before := at.Add(-time.Second)
	_, from := before.Zone()
	name, to := at.Zone()
	shown := at.In(time.FixedZone("", from)) // what the clock would show without the change
	switch {
	case to > from:
		text := fmt.Sprintf("clocks are set forward from %s to %s (%s)", shown.Format("15:04"), at.Format("15:04"), name)
		if r.skips(at) {
			text += "; a run in the hour between is left out"
		}
		return text
	case to < from:
		return fmt.Sprintf("clocks are set back from %s to %s (%s)", shown.Format("15:04"), at.Format("15:04"), name)
	}
	return fmt.Sprintf("the zone is called %s from here on", name)
}

// skips reports whether the change of the clock at that time skips a run.
func (r *Reader) skips(at time.Time) bool {
	late, ok := r.after.Next(at.Add(-time.Second))
	if !ok || !late.Equal(at) {
		return false
	}
	run, ok := r.runs.Next(at.Add(-time.Second))
	return !ok || !run.Equal(at)
}

// Month is the first day of a time's month, as a date without a zone.
func Month(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// Clock is the name of the zone in which the plan's times are shown.
func (p Plan) Clock() string { return cmp.Or(clockOf(p), "UTC") }

// StartOfDay is the first moment of a day on the schedule's clock. That is later than
// midnight if the clock skips midnight.
func (r *Reader) StartOfDay(year int, month time.Month, day int) time.Time {
	at := time.Date(year, month, day, 0, 0, 0, 0, r.loc)
	if at.Day() != time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Day() {
		_, at = at.ZoneBounds()
	}
	return at
}

// Day counts the runs of a day on the schedule's clock that come after a time, and lists
// the first n of them with the changes of the clock before and among them.
func (r *Reader) Day(year int, month time.Month, day int, after time.Time, n int) (runs int64, first []Time) {
	begin, end := r.StartOfDay(year, month, day), r.StartOfDay(year, month, day+1)
	// A run at the very beginning of the day belongs to the day.
	if from := begin.Add(-time.Nanosecond); after.Before(from) {
		after = from
	}
	last := end.Add(-time.Nanosecond)
	if !after.Before(last) {
		return 0, nil
	}
	runs = r.Count(after, last)
	for _, t := range r.Next(after, n) {
		if t.At.Before(end) {
			first = append(first, t)
		}
	}
	return runs, first
}
