package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// A field describes one of the five fields of a schedule: its values and their names.
type field struct {
	low, high uint
	names     map[string]uint
}

// fields returns the five fields in their order.
func fields() [5]field {
	return [5]field{
		{low: 0, high: 59},
		{low: 0, high: 23},
		{low: 1, high: 31},
		{low: 1, high: 12, names: map[string]uint{
			"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
			"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
		}},
		{low: 0, high: 6, names: map[string]uint{
			"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6,
		}},
	}
}

// The positions of the five fields.
const (
	minute = iota
	hour
	dayOfMonth
	month
	dayOfWeek
)

// A values is what one field of a schedule selects.
type values struct {
	bits uint64
	// every says that the field holds a * or ? without a step. If a day field does, only
	// the other day field selects days.
	every bool
}

func (v values) empty() bool { return bits.OnesCount64(v.bits) == 0 }

// readFields reads the five fields of a schedule.
func readFields(text string) ([5]values, error) {
	var read [5]values
	parts := strings.Fields(text)
	if len(parts) != len(read) {
		return read, fmt.Errorf("expected exactly %d fields, found %d: %s", len(read), len(parts), parts)
	}
	for i, f := range fields() {
		v, err := f.read(parts[i])
		if err != nil {
			return read, err
		}
		read[i] = v
	}
	return read, nil
}

// A Field is what one of the five fields of a schedule selects. Two texts that select the
// same are the same Field.
type Field struct {
	// Values are in ascending order, between Low and High.
	Values    []int
	Low, High int
	// Every says that the field is a * or ?, which leaves the choice of days to the other day
	// field.
	Every bool
}

// Fields are the minute, hour, day of month, month and day of week of a schedule that Parse
// accepts. There are none for an interval.
func Fields(text string) []Field {
	text, _, err := cutZone(text, time.UTC)
	if err != nil {
		return nil
	}
	if strings.HasPrefix(text, "@") {
		if text, _, err = readMacro(text); err != nil {
			return nil
		}
	}
	read, err := readFields(text)
	if err != nil {
		return nil
	}
	out := make([]Field, len(read))
	for i, f := range fields() {
		out[i] = Field{Low: int(f.low), High: int(f.high), Every: read[i].every}
		for v := f.low; v <= f.high; v++ {
			if read[i].bits&(1<<v) != 0 {
				out[i].Values = append(out[i].Values, int(v))
			}
		}
	}
	return out
}

// read reads a list. The API server accepts empty items, even an empty list.
func (f field) read(list string) (values, error) {
	var all values
	for item := range strings.SplitSeq(list, ",") {
		if item == "" {
			continue
		}
		v, err := f.readItem(item)
		if err != nil {
			return values{}, err
		}
		all.bits |= v.bits
		all.every = all.every || v.every
	}
	return all, nil
}

// A span is a range of values with a step.
type span struct{ first, last, step uint }

// readItem reads a value, a range, or either with a step.
func (f field) readItem(item string) (values, error) {
	rangeText, stepText, stepped := strings.Cut(item, "/")
	s, wildcard, single, err := f.readRange(rangeText, item)
	if err != nil {
		return values{}, err
	}
	if stepped {
		if strings.Contains(stepText, "/") {
			return values{}, fmt.Errorf("too many slashes: %s", item)
		}
		if s.step, err = number(stepText); err != nil {
			return values{}, err
		}
		if single {
			s.last = f.high
		}
	}
	if err := f.check(s, item); err != nil {
		return values{}, err
	}
	return values{bits: s.bits(), every: wildcard && s.step == 1}, nil
}

// readRange reads the part before the step. After a wildcard and a hyphen any text
// may follow, because the API server accepts that.
func (f field) readRange(text, item string) (s span, wildcard, single bool, err error) {
	low, high, isRange := strings.Cut(text, "-")
	if low == "*" || low == "?" {
		return span{f.low, f.high, 1}, true, !isRange, nil
	}
	if s.first, err = f.value(low); err != nil {
		return span{}, false, false, err
	}
	s.last, s.step = s.first, 1
	if !isRange {
		return s, false, true, nil
	}
	if strings.Contains(high, "-") {
		return span{}, false, false, fmt.Errorf("too many hyphens: %s", item)
	}
	s.last, err = f.value(high)
	return s, false, false, err
}

func (f field) check(s span, item string) error {
	switch {
	case s.first < f.low:
		return fmt.Errorf("beginning of range (%d) below minimum (%d): %s", s.first, f.low, item)
	case s.last > f.high:
		return fmt.Errorf("end of range (%d) above maximum (%d): %s", s.last, f.high, item)
	case s.first > s.last:
		return fmt.Errorf("beginning of range (%d) beyond end of range (%d): %s", s.first, s.last, item)
	case s.step == 0:
		return fmt.Errorf("step of range should be a positive number: %s", item)
	}
	return nil
}

func (s span) bits() uint64 {
	var set uint64
	for v := s.first; v <= s.last; v += s.step {
		set |= 1 << v
		if s.step > s.last-v {
			break
		}
	}
	return set
}

func (f field) value(text string) (uint, error) {
	if v, ok := f.names[strings.ToLower(text)]; ok {
		return v, nil
	}
	return number(text)
}

func number(text string) (uint, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("failed to parse int from %s: %w", text, err)
	}
	if n < 0 {
		return 0, fmt.Errorf("negative number (%d) not allowed: %s", n, text)
	}
	return uint(n), nil
}

// readMacro returns what a macro stands for: five fields, or an interval.
func readMacro(text string) (fields string, every time.Duration, err error) {
	switch text {
	case "@yearly", "@annually":
		return "0 0 1 1 *", 0, nil
	case "@monthly":
		return "0 0 1 * *", 0, nil
	case "@weekly":
		return "0 0 * * 0", 0, nil
	case "@daily", "@midnight":
		return "0 0 * * *", 0, nil
	case "@hourly":
		return "0 * * * *", 0, nil
	}
	interval, isInterval := strings.CutPrefix(text, "@every ")
	if !isInterval {
		return "", 0, fmt.Errorf("unrecognized descriptor: %s", text)
	}
	d, err := time.ParseDuration(interval)
	if err != nil {
		return "", 0, fmt.Errorf("failed to parse duration %s: %w", text, err)
	}
	return "", max(d, time.Second).Truncate(time.Second), nil
}
