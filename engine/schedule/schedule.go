// Package schedule says at which times a CronJob's schedule is due.
//
// Parse accepts what the Kubernetes API server accepts, and refuses the rest with the
// same messages: five fields with names, ranges, lists and steps, ?, the macros,
// @every, and a leading TZ= or CRON_TZ=. Runs are due when the built-in controller
// (v1.37, robfig/cron v3) starts them; Options change how clock changes are treated.
// The calendar itself, with its month lengths and leap years, is that of
// github.com/netresearch/go-cron. That library's parser is not used, because it
// differs from the API server's: it accepts 7 for Sunday (so that 1/2 includes
// Sunday) and ranges that wrap around, and refuses steps that leave a range, names
// with a capital H, and texts of 1025 bytes.
//
// This package does not read a clock, the machine's time zone, or its files. No input
// makes a call take long.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"jobpolicy.dev/engine/timestamp"
	"jobpolicy.dev/engine/zone"
)

// A Schedule says when runs are due. Times are whole seconds in UTC.
type Schedule interface {
	// Next is the first time later than t; ok is false if there is none within five
	// years.
	Next(t time.Time) (next time.Time, ok bool)
	// Last is the last time in (from, until]; ok is false if there is none. The times of
	// an interval (@every) are counted from from.
	Last(from, until time.Time) (last time.Time, ok bool)
	// Count is how many times are in (from, until]. It is exact up to CountLimit and an
	// estimate above.
	Count(from, until time.Time) int64
}

// CountLimit is the number up to which Count is exact.
const CountLimit = 100

// RepeatedHour says which time counts if a clock shows the same time twice because it
// is set back in between.
type RepeatedHour int

// The values of RepeatedHour.
const (
	// Both is what the built-in controller does.
	Both RepeatedHour = iota
	// First takes the time before the clock is set back.
	First
	// Last takes the time after it.
	Last
)

// SkippedHour says what happens to times that a clock does not show because it is set
// forward.
type SkippedHour int

// The values of SkippedHour.
const (
	// Skip leaves them out, as the built-in controller does.
	Skip SkippedHour = iota
	// RunAfter replaces all of them by one run at the time when the clock is set
	// forward.
	RunAfter
)

// Options change what happens around changes of the clock. They do not affect
// intervals (@every), which do not depend on what a clock shows.
type Options struct {
	RepeatedHour RepeatedHour
	SkippedHour  SkippedHour
}

// Parse reads a schedule. If it has no TZ= of its own, its times are in loc. The
// error says what is wrong in the words of the built-in controller.
func Parse(text string, loc *time.Location, opts Options) (Schedule, error) {
	if text == "" {
		return nil, errors.New("empty spec string")
	}
	text, loc, err := cutZone(text, loc)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(text, "@") {
		fields, every, err := readMacro(text)
		if err != nil {
			return nil, err
		}
		if every > 0 {
			return interval(every / time.Second), nil
		}
		text = fields
	}
	read, err := readFields(text)
	if err != nil {
		return nil, err
	}
	return newCalendar(read, loc, opts), nil
}

// cutZone removes a leading TZ= or CRON_TZ= from a schedule and returns its zone.
func cutZone(text string, loc *time.Location) (string, *time.Location, error) {
	prefixed, has := strings.CutPrefix(text, "TZ=")
	if !has {
		prefixed, has = strings.CutPrefix(text, "CRON_TZ=")
	}
	if !has {
		return text, loc, nil
	}
	name, rest, ok := strings.Cut(prefixed, " ")
	if !ok {
		return "", nil, fmt.Errorf("invalid schedule format: nothing follows the time zone: %s", text)
	}
	if name != "Local" {
		var err error
		if loc, err = zone.Load(name); err != nil {
			return "", nil, fmt.Errorf("provided bad location %s: %w", name, err)
		}
	}
	return strings.TrimSpace(rest), loc, nil
}

// An interval is a schedule whose times are this many seconds apart.
type interval int64

func (d interval) Next(after time.Time) (time.Time, bool) { return unix(after.Unix() + int64(d)) }

func (d interval) Last(after, until time.Time) (time.Time, bool) {
	n := d.Count(after, until)
	if n == 0 {
		return time.Time{}, false
	}
	return unix(after.Unix() + n*int64(d))
}

func (d interval) Count(after, until time.Time) int64 {
	return max(0, (until.Unix()-after.Unix())/int64(d))
}

func unix(second int64) (time.Time, bool) {
	if second > timestamp.Last.Unix() {
		return time.Time{}, false
	}
	return time.Unix(second, 0).UTC(), true
}
