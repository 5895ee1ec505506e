package schedule

import (
	"time"

	"github.com/netresearch/go-cron"
)

// searchYears is how far Next looks ahead, as in the built-in controller.
const searchYears = 5

// farAhead is more than all that clocks can differ by from UTC and from
// themselves.
const farAhead = 72 * time.Hour

// A calendar is a schedule of five fields.
type calendar struct {
	// face is the schedule of a clock that is never changed.
	face  *cron.SpecSchedule
	loc   *time.Location
	opts  Options
	never bool
}

func newCalendar(read [5]values, loc *time.Location, opts Options) calendar {
	return calendar{
		face: &cron.SpecSchedule{
			Second: 1 << 0,
			Minute: read[minute].bits,
			Hour:   read[hour].bits,
			Dom:    read[dayOfMonth].bits,
			Month:  read[month].bits,
			Dow:    read[dayOfWeek].bits,
			// Two restricted day fields add up, as in every cron; a field of * does
			// not restrict.
			DowOrDom:       !read[dayOfMonth].every && !read[dayOfWeek].every,
			Location:       time.UTC,
			MaxSearchYears: searchYears,
		},
		loc:   loc,
		opts:  opts,
		never: read[minute].empty() || read[hour].empty() || read[month].empty(),
	}
}

// Next goes from one change of the clock to the next. In between, a clock face
// is as far from UTC all the time, so the calendar of one that is never changed
// will do. (The library's own way through a zone runs times of a skipped hour
// at the hour after it, and never returns from a day that was left out, as in
// Samoa in 2011. The built-in controller does not return from there, either.)
func (c calendar) Next(after time.Time) (time.Time, bool) {
	if c.never {
		return time.Time{}, false
	}
	at := after.UTC().Truncate(time.Second)
	lastYear := at.Add(time.Second).In(c.loc).Year() + searchYears
	for exclude := time.Duration(0); ; {
		local := at.In(c.loc)
		ahead := offset(local)
		shown := c.face.Next(at.Add(ahead - exclude))
		if shown.IsZero() || shown.Year() > lastYear {
			return time.Time{}, false
		}
		next := shown.Add(-ahead)
		change := nextChange(local)
		if change.IsZero() || next.Before(change) {
			if !c.dropped(next) {
				return unix(next.Unix())
			}
			at, exclude = next, 0
			continue
		}
		// No clock shows anything of the schedule before shown: what a change sets
		// back is less than a day, and lies after at. So the search may leap.
		if leap := shown.Add(-farAhead); leap.After(change) && change.After(at.Add(farAhead)) {
			at, exclude = leap, 0
			continue
		}
		at, exclude = change.UTC(), time.Second
		if c.opts.SkippedHour == RunAfter && shown.Before(at.Add(offset(at.In(c.loc)))) {
			return unix(at.Unix())
		}
	}
}

// nextChange is when local's zone next changes its offset, as far as is known;
// zero if it never does. On the 31st of December of a leap year the package time
// names a change that has already been; then the next look is an hour on.
func nextChange(local time.Time) time.Time {
	_, change := local.ZoneBounds()
	if !change.IsZero() && !change.After(local) {
		return local.Add(time.Hour)
	}
	return change
}

// dropped reports whether a time is the one of two alike that is not wanted.
func (c calendar) dropped(t time.Time) bool {
	local := t.In(c.loc)
	begin, end := local.ZoneBounds()
	switch c.opts.RepeatedHour {
	case First:
		if begin.IsZero() {
			return false
		}
		setBack := offset(begin.Add(-time.Second).In(c.loc)) - offset(local)
		return t.Sub(begin) < setBack
	case Last:
		if end.IsZero() {
			return false
		}
		setBack := offset(local) - offset(end.In(c.loc))
		return end.Sub(t) <= setBack
	}
	return false
}

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// Last searches by halves: before the last time of a schedule Next finds one
// that is not later than until, and from then on it does not.
func (c calendar) Last(after, until time.Time) (time.Time, bool) {
	last, ok := c.Next(after)
	if !ok || last.After(until) {
		return time.Time{}, false
	}
	for low, high := last.Unix(), until.Unix(); low < high; {
		middle := low + (high-low)/2
		next, ok := c.Next(time.Unix(middle, 0).UTC())
		if !ok || next.After(until) {
			high = middle
			continue
		}
		last, low = next, next.Unix()
	}
	return last, true
}

func (c calendar) Count(after, until time.Time) int64 {
	at, n := after, int64(0)
	for {
		next, ok := c.Next(at)
		if !ok || next.After(until) {
			return n
		}
		at, n = next, n+1
		if n > CountLimit {
			return n * max(1, (until.Unix()-after.Unix())/(at.Unix()-after.Unix()))
		}
	}
}
