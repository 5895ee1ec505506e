package cronjob

import (
	"strings"
	"time"

	"jobpolicy.dev/engine/annotation"
	"jobpolicy.dev/engine/schedule"
)

// Upstream's annotations, and their values.
const (
	annotationScheduledTime = "batch.kubernetes.io/cronjob-scheduled-timestamp"
	annotationInstantiate   = "cronjob.kubernetes.io/instantiate"
	instantiateManually     = "manual"
)

const (
	maxStartJitterSeconds   = 3600
	maxSuspendAfterFailures = 100
)

// options are the options that a CronJob sets in annotations. The zero value sets
// none.
type options struct {
	startJitter          int64 // seconds
	clock                schedule.Options
	skipMissed           bool
	suspendAfter         int // 0: never
	runNow               string
	observed             observation
	failuresCountedUntil time.Time
	invalid              []string // what is wrong with those that are ignored
}

// An observation says which schedule the engine saw, and since when.
type observation struct {
	schedule string
	since    time.Time
}

func readOptions(annotations map[string]string) options {
	r := annotation.Reader{Annotations: annotations}
	var read options
	read.startJitter, _ = r.Number(annotation.StartJitter, "a whole number", 0, maxStartJitterSeconds)
	failures, _ := r.Number(annotation.SuspendAfter, "a whole number", 1, maxSuspendAfterFailures)
	read.suspendAfter = int(failures)
	read.clock.RepeatedHour = schedule.RepeatedHour(r.Choice(annotation.RepeatedHour, "Both", "First", "Last"))
	read.clock.SkippedHour = schedule.SkippedHour(r.Choice(annotation.SkippedHour, "Skip", "RunAfter"))
	read.skipMissed = r.Choice(annotation.MissedBeforeEdit, "Run", "Skip") == 1
	read.runNow = annotations[annotation.RunNow]
	since, seen, _ := strings.Cut(annotations[annotation.ObservedSchedule], " ")
	if at, err := time.Parse(time.RFC3339, since); err == nil {
		read.observed = observation{seen, at}
	}
	if until, err := time.Parse(time.RFC3339, annotations[annotation.FailuresCountedUntil]); err == nil {
		read.failuresCountedUntil = until
	}
	read.invalid = r.Problems
	return read
}
