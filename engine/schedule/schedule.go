// Package schedule says at which times a CronJob's schedule is due.
//
// Parse admits what the Kubernetes API server admits, with the same words where
// it does not: five fields with names, ranges, lists and steps, ?, the macros,
// @every, and a leading TZ= or CRON_TZ=. What is due when, is what the built-in
// controller (v1.36, robfig/cron v3) finds; Options is for those who want clock
// changes to be treated otherwise. The calendar itself, with its month lengths,
// leap years and clock changes, is that of github.com/netresearch/go-cron. Its
// reading of text is not used, because it differs from the API server's: it takes
// 7 for Sunday (and so Sunday into 1/2), ranges that wrap around, and refuses
// steps that leave a range, names with a capital H, and texts of 1025 bytes.
//
// Nothing here looks at a clock, at the machine's time zone, or at its files. No
// input makes a call take long.
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
	// Next is the first time after after; ok is false if there is none, or none
	// within five years.
	Next(after time.Time) (next time.Time, ok bool)
	// Last is the last time after after and not later than until; ok is false if
	// there is none. An interval begins at after.
	Last(after, until time.Time) (last time.Time, ok bool)
	// Count is how many times lie after after and not later than until: exactly
	// up to CountLimit, by estimate above.
	Count(after, until time.Time) int64
}

// CountLimit is up to which number Count is exact.
const CountLimit = 100

// RepeatedHour says which to take of two times that a clock shows alike because
// it is set back in between.
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

// SkippedHour says what becomes of times that no clock shows because it is set
// forward.
type SkippedHour int

// The values of SkippedHour.
const (
	// Skip leaves them out, as the built-in controller does.
	Skip SkippedHour = iota
	// RunAfter puts them where the clock is set forward, all of them in one.
	RunAfter
)

// Options change what happens around changes of the clock. They do not concern
// intervals (@every), which no clock face has a part in.
type Options struct {
	RepeatedHour RepeatedHour
	SkippedHour  SkippedHour
}

// Parse reads a schedule. Without a TZ= of its own, its times are those of clocks
// at loc. The error says what is wrong in the words of the built-in controller.
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

// cutZone takes a leading TZ= or CRON_TZ= off a schedule.
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

// An interval is a schedule of times so many seconds apart.
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
