// Package annotation has the names of the annotations that the engine reads and
// writes, and parses their values.
package annotation

import (
	"fmt"
	"strconv"
	"strings"
)

// Annotations of a Job.
const (
	TTLAfterComplete = "jobpolicy.dev/ttl-seconds-after-complete"
	TTLAfterFailed   = "jobpolicy.dev/ttl-seconds-after-failed"
)

// DefaultTTL is an annotation of a namespace.
const DefaultTTL = "jobpolicy.dev/default-ttl-seconds-after-finished"

// Annotations of a CronJob. A Job that was created because of RunNow has that
// annotation too.
const (
	StartJitter      = "jobpolicy.dev/start-jitter-seconds"
	RepeatedHour     = "jobpolicy.dev/dst-repeated-hour"
	SkippedHour      = "jobpolicy.dev/dst-skipped-hour"
	MissedBeforeEdit = "jobpolicy.dev/missed-before-edit"
	SuspendAfter     = "jobpolicy.dev/suspend-after-failures"
	RunNow           = "jobpolicy.dev/run-now"
)

// Annotations of a CronJob that only the engine writes.
const (
	ObservedSchedule     = "jobpolicy.dev/observed-schedule"
	FailuresCountedUntil = "jobpolicy.dev/failures-counted-until"
)

// MaxValueBytes and MaxTotalBytes are the contract's limits: of a value, and of all
// names and values together.
const (
	MaxValueBytes = 4096
	MaxTotalBytes = 1 << 20
)

// Problem says which limit of the contract is broken; "" if none is.
func Problem(annotations map[string]string) string {
	total, longest := 0, 0
	// order does not matter: a sum and a maximum.
	for name, value := range annotations {
		total += len(name) + len(value)
		longest = max(longest, len(value))
	}
	switch {
	case longest > MaxValueBytes:
		return fmt.Sprintf("must have values of at most %d bytes, has one of %d", MaxValueBytes, longest)
	case total > MaxTotalBytes:
		return fmt.Sprintf("must have at most %d bytes, has %d", MaxTotalBytes, total)
	}
	return ""
}

// A Reader reads the annotations of one object.
type Reader struct {
	// Annotations are the object's, by name.
	Annotations map[string]string
	// Problems say what is wrong with the values that cannot be read. They are the
	// messages of events.
	Problems []string
}

// Number reads a whole number from low to high. Messages call it by the parameter
// what, for example "a whole number of seconds". ok is false if the annotation is
// absent or cannot be read.
func (r *Reader) Number(name, what string, low, high int64) (n int64, ok bool) {
	text, has := r.Annotations[name]
	if !has {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		r.problem(name, text, fmt.Sprintf("%s from %d to %d", what, low, high))
		return 0, false
	}
	return n, true
}

// Choice reads one of several words and returns its position in the list; 0 if the
// annotation is absent or cannot be read.
func (r *Reader) Choice(name string, words ...string) int {
	text, has := r.Annotations[name]
	if !has {
		return 0
	}
	for i, word := range words {
		if text == word {
			return i
		}
	}
	r.problem(name, text, strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1])
	return 0
}

func (r *Reader) problem(name, text, expected string) {
	r.Problems = append(r.Problems, fmt.Sprintf("annotation %s: expected %s, found %q; it is left aside", name, expected, Shortened(text)))
}

// Shortened cuts off a text of a user that is too long for an event.
func Shortened(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
