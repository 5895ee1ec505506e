package schedule

import (
	"time"

	"github.com/netresearch/go-cron"
)

// searchYears is how far Next looks ahead, as in the built-in controller.
const searchYears = 5

// farAhead is longer than the sum of any offset from UTC and any clock change.
const farAhead = 72 * time.Hour

// A calendar is a schedule of five fields.
type calendar struct {
	// face is the schedule on a clock that is never set forward or back.
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
			// If both day fields are restricted, a day that matches either one is selected, as
			// in every cron. A field of * is not restricted.
			DowOrDom:       !read[dayOfMonth].every && !read[dayOfWeek].every,
			Location:       time.UTC,
			MaxSearchYears: searchYears,
		},
		loc:   loc,
		opts:  opts,
		never: read[minute].empty() || read[hour].empty() || read[month].empty(),
	}
}

// Next searches from one clock change to the next. Between two changes the offset
// from UTC is constant, so the times of face are right. (The
// library's own search in a time zone runs times of a skipped hour in the hour after
// it, and never returns if a whole day is skipped, as in Samoa in 2011. The built-in
// controller never returns there either.)
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
		// The schedule has no time before shown, and a clock is set back by less than a
		// day, and only after at. So the search may skip ahead.
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

// nextChange is when local's zone next changes its offset, as far as is known; zero
// if it never does. On December 31 of a leap year the package time returns a change
// that is in the past; then the search continues an hour later.
func nextChange(local time.Time) time.Time {
	_, change := local.ZoneBounds()
	if !change.IsZero() && !change.After(local) {
		return local.Add(time.Hour)
	}
	return change
}

// dropped reports whether the clock shows this time twice, and the options drop this
// one of the two.
func (c calendar) dropped(t time.Time) bool {
	local := t.In(c.loc)
	switch c.opts.RepeatedHour {
	case First:
		begin, _ := local.ZoneBounds()
		if begin.IsZero() {
			return false
		}
		setBack := offset(begin.Add(-time.Second).In(c.loc)) - offset(local)
		return t.Sub(begin) < setBack
	case Last:
		end := nextChange(local)
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

// Last is a binary search: from any time before the schedule's last time, Next finds
// a time that is not later than until; from the last time on, it does not.
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
