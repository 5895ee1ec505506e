package cronjob

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobpolicy.dev/engine/schedule"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Names of annotations. Those of Kubernetes are upstream's.
const (
	annotationStartJitter   = "jobpolicy.dev/start-jitter-seconds"
	annotationRepeatedHour  = "jobpolicy.dev/dst-repeated-hour"
	annotationSkippedHour   = "jobpolicy.dev/dst-skipped-hour"
	annotationMissed        = "jobpolicy.dev/missed-before-edit"
	annotationSuspendAfter  = "jobpolicy.dev/suspend-after-failures"
	annotationRunNow        = "jobpolicy.dev/run-now"
	annotationScheduledTime = "batch.kubernetes.io/cronjob-scheduled-timestamp"
	annotationInstantiate   = "cronjob.kubernetes.io/instantiate"
	instantiateManually     = "manual"
	maxStartJitterSeconds   = 3600
	maxSuspendAfterFailures = 100
)

// options are what a CronJob asks for by annotation, read. The zero value asks
// for nothing.
type options struct {
	startJitter          int64 // seconds
	clock                schedule.Options
	skipMissed           bool
	suspendAfter         int // 0: never
	runNow               string
	observed             observation
	failuresCountedUntil time.Time
	invalid              []string // what is wrong with those that are left aside
}

// An observation says which schedule was seen, and since when.
type observation struct {
	schedule string
	since    time.Time
}

func readOptions(o *jobpolicyv1.CronJobOptions) options {
	var read options
	read.startJitter = read.number(annotationStartJitter, o.StartJitterSeconds, 0, maxStartJitterSeconds)
	read.suspendAfter = int(read.number(annotationSuspendAfter, o.SuspendAfterFailures, 1, maxSuspendAfterFailures))
	read.clock.RepeatedHour = schedule.RepeatedHour(read.choice(annotationRepeatedHour, o.DstRepeatedHour, "Both", "First", "Last"))
	read.clock.SkippedHour = schedule.SkippedHour(read.choice(annotationSkippedHour, o.DstSkippedHour, "Skip", "RunAfter"))
	read.skipMissed = read.choice(annotationMissed, o.MissedBeforeEdit, "Run", "Skip") == 1
	read.runNow = o.GetRunNow()
	since, seen, _ := strings.Cut(o.GetObservedSchedule(), " ")
	if at, err := time.Parse(time.RFC3339, since); err == nil {
		read.observed = observation{seen, at}
	}
	if until, err := time.Parse(time.RFC3339, o.GetFailuresCountedUntil()); err == nil {
		read.failuresCountedUntil = until
	}
	return read
}

// number reads a whole number; 0 if there is none.
func (o *options) number(annotation string, text *string, low, high int64) int64 {
	if text == nil {
		return 0
	}
	n, err := strconv.ParseInt(*text, 10, 64)
	if err != nil || n < low || n > high {
		o.leaveAside(annotation, *text, fmt.Sprintf("a whole number from %d to %d", low, high))
		return 0
	}
	return n
}

// choice reads one of several words as its place among them; 0 if there is none.
func (o *options) choice(annotation string, text *string, words ...string) int {
	if text == nil {
		return 0
	}
	for i, word := range words {
		if *text == word {
			return i
		}
	}
	o.leaveAside(annotation, *text, strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1])
	return 0
}

func (o *options) leaveAside(annotation, text, expected string) {
	o.invalid = append(o.invalid, fmt.Sprintf("annotation %s: expected %s, found %q; it is left aside", annotation, expected, shortened(text)))
}

// shortened keeps what a person wrote readable in an event.
func shortened(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
