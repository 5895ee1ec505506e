package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
)

// If something takes the pods of a Job away from it, the Job lacks pods for ever. So a Job of which
// Config.MaxUnseenPods pods were created and none was seen (tracker.UnseenPods) stands still: it creates
// no pod until tracker.UnseenPeriod after the last one, unless one of them is seen before.

// DefaultMaxUnseenPods is the default of Config.MaxUnseenPods.
const DefaultMaxUnseenPods = 1000

// EventRunawayCreation is the reason of the event about a Job that stands still.
const EventRunawayCreation = "RunawayCreation"

// errUnseen: no further pod may be created before it is known whether any of the last ones is the
// Job's.
var errUnseen = errors.New("too many pods were created and not seen")

// standstill reports whether no pod of a Job may be created, and until when, in elapsed time.
func (c *Config) standstill(s *tracker.Job) (until time.Time, stands bool) {
	u := s.UnseenPods()
	return u.Last.Add(tracker.UnseenPeriod), u.Pods >= c.MaxUnseenPods
}

// createAfter is when pods may be created again, in elapsed time; zero if nothing has delayed that.
func (c *Config) createAfter(s *tracker.Job) time.Time {
	at := s.StepWaitsUntil(tracker.Create)
	if until, stands := c.standstill(s); stands && until.After(at) {
		return until
	}
	return at
}

// A Standstill is why a Job stands still, and when its last pod was created, in wall time. Zero: it
// does not.
type Standstill struct {
	At  time.Time
	Why string
}

func (c *Config) standstillOf(s *tracker.Job) Standstill {
	until, stands := c.standstill(s)
	if !stands {
		return Standstill{}
	}
	now := c.Now()
	return Standstill{At: clock.WallOf(until.Add(-tracker.UnseenPeriod), now), Why: fmt.Sprintf(
		"%d pods were created for the Job, and none of them was seen as its own; no pod is created until %s. See who changes new pods: they lose their owner, their labels or their finalizer",
		c.MaxUnseenPods, clock.WallOf(until, now).UTC().Format(time.RFC3339))}
}

// mustSee reports whether the pods have to be listed because a Job is about to stand still. The watch
// may only be late.
func (c *Config) mustSee(s *tracker.Job) bool {
	until, stands := c.standstill(s)
	return stands && until != s.Standstill
}

// standStill tells that a Job stands still, once for each standstill.
func (r *reconciler) standStill(ctx context.Context, s *tracker.Job, job *batchv1.Job) {
	if !r.cfg.mustSee(s) {
		return
	}
	s.Standstill, _ = r.cfg.standstill(s)
	why := r.cfg.standstillOf(s).Why
	r.report.base.Recorder.Event(job, corev1.EventTypeWarning, EventRunawayCreation, why)
	r.report.metrics.standstills.WithLabelValues().Inc()
	r.cfg.Logger.ErrorContext(ctx, "job creates no pods: none of the last ones was seen as its own",
		append(telemetry.JobAttrs(job), slog.Int("pods", r.cfg.MaxUnseenPods), slog.Time("until", s.Standstill))...)
}
