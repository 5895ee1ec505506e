package executor

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Events and planned requeues enqueue Jobs. If a defect of this program loses one of them,
// the Job gets no reconcile that it needs. missedReconciles finds such Jobs: now and then it
// asks the engine about each idle Job whether there is something to do. It makes no request
// to the API server. Each Job that it finds shows a defect, and is counted.

const (
	// checkPeriod is how often each Job is checked. The Jobs take turns: every checkStep,
	// some are checked.
	checkPeriod = 10 * time.Minute
	checkStep   = 10 * time.Second
	// clockTolerance is how far wall time and elapsed time may differ within a step.
	clockTolerance = time.Second
)

// suspect is an idle Job for which there is something to do. Its event may be on the way.
// If the Job is still not reconciled at the next step, an event was missed.
type suspect struct {
	job  *tracker.Job
	last time.Time // When the Job was reconciled last.
}

// missedReconciles finds idle Jobs for which there is something to do.
type missedReconciles struct {
	scope   controller.Scope
	jobs    *tracker.Jobs
	queue   jobQueue
	decider *decider
	second  *secondController
	// podWatch knows which pods are gone.
	podWatch *podWatch
	last     clocks
}

// newMissedReconciles reads the clocks, so it must be called before a reconcile is planned.
func newMissedReconciles(scope controller.Scope, jobs *tracker.Jobs, queue jobQueue, d *decider, second *secondController, pods *podWatch) *missedReconciles {
	l := &missedReconciles{scope: scope, jobs: jobs, queue: queue, decider: d, second: second, podWatch: pods}
	l.last = l.readClocks()
	return l
}

// run checks all Jobs, over and over, until ctx ends.
func (l *missedReconciles) run(ctx context.Context) {
	ticker := time.NewTicker(checkStep)
	defer ticker.Stop()
	const steps = int(checkPeriod / checkStep)
	var suspects []suspect
	for step := 0; ; step = (step + 1) % steps {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		l.last = l.checkClocks(l.last)
		for _, s := range suspects {
			l.confirm(ctx, s)
		}
		suspects = l.suspects(ctx, step, steps)
	}
}

// suspects checks the Jobs whose turn it is.
func (l *missedReconciles) suspects(ctx context.Context, step, steps int) []suspect {
	var found []suspect
	for _, s := range l.jobs.All() {
		if checkTurn(s.UID, steps) != step {
			continue
		}
		if last, why := l.due(ctx, s); why != "" {
			found = append(found, suspect{job: s, last: last})
		}
		l.forget(s)
	}
	return found
}

// forget forgets a Job that does not exist any more, once its pods are gone. Usually the watcher
// does that when the watch shows the end of a pod. But after a new list, the watch does not show
// a pod that was created and deleted since the list before.
func (l *missedReconciles) forget(s *tracker.Job) {
	if s.Current() != nil {
		return
	}
	l.podWatch.sweep(s)
	l.jobs.DropUnused(s.Key)
}

// checkTurn is the step of a period in which a Job is checked.
func checkTurn(uid types.UID, steps int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // Never fails.
	return int(h.Sum32() % uint32(steps))
}

// confirm reports and enqueues a suspect that was not reconciled since.
func (l *missedReconciles) confirm(ctx context.Context, suspected suspect) {
	s := suspected.job
	last, why := l.due(ctx, s)
	if why == "" || !last.Equal(suspected.last) {
		return
	}
	job := s.Current()
	if job == nil {
		return
	}
	l.decider.metrics.missedReconciles.WithLabelValues().Inc()
	l.decider.base.Logger.WarnContext(ctx, telemetry.LogMissedReconcile, append(telemetry.JobAttrs(job), slog.String("due", why))...)
	if !l.decider.cfg.MissedReconcilesReportOnly {
		l.queue.enqueue(s, causeMissed, controller.PriorityNormal)
	}
}

// due returns why an idle Job should be reconciled, and when it was reconciled last. why is ""
// if the Job is not idle, if there is nothing to do, if a reconcile is planned in time, or if
// the engine could not be asked.
func (l *missedReconciles) due(ctx context.Context, s *tracker.Job) (last time.Time, why string) {
	queued := l.queue.State(s.Key)
	if !l.idle(s, queued) {
		return time.Time{}, ""
	}
	if s.Has(tracker.StaleJob | tracker.StalePods) {
		return queued.Last, "the cached Job or its pods are stale"
	}
	snap, d, err := l.decider.decide(ctx, s, toCheck)
	switch {
	case err != nil:
		return queued.Last, "" // The Job will be checked again.
	case d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_SETTLED:
		return queued.Last, cmp.Or(d.GetExplanation().GetSummary(), dispositionLabel(d.GetDisposition()))
	}
	requeue := l.decider.cfg.requeueAfter(snap, d)
	// No reconcile is planned, or it is planned more than one step later than the decision asks.
	if requeue > 0 && (queued.Planned.IsZero() || queued.Planned.After(time.Now().Add(min(requeue, maxRequeueAfter)+checkStep))) {
		return queued.Last, fmt.Sprintf("requeue after %v is not planned", requeue)
	}
	return queued.Last, ""
}

// idle reports whether a Job that the executor reconciles was not reconciled lately, is not
// queued, and is not planned for soon. A Job that the API server does not have any more is not
// idle: it waits for the watch to show its deletion.
func (l *missedReconciles) idle(s *tracker.Job, queued controller.State) bool {
	job := s.Current()
	if !l.scope.Reconciles(job) || s.Has(tracker.NotFound) || l.second.StandDown(s.UID) > 0 || !wire.KnownCompletionMode(job) || queued.Running || queued.Pending {
		return false
	}
	soon := time.Now().Add(checkStep)
	idle := queued.Last.Before(soon.Add(-2 * checkStep))
	return idle && (queued.Planned.IsZero() || queued.Planned.After(soon)) && !queued.BackoffUntil.After(soon)
}

// clocks are wall time and elapsed time at one moment.
type clocks struct{ wall, elapsed time.Time }

func (l *missedReconciles) readClocks() clocks {
	return clocks{wall: l.decider.cfg.Now(), elapsed: time.Now()}
}

// checkClocks enqueues the Jobs with a planned reconcile if wall time was set forward: a
// deadline or a retry delay may have ended.
func (l *missedReconciles) checkClocks(before clocks) clocks {
	now := l.readClocks()
	if now.wall.Sub(before.wall)-now.elapsed.Sub(before.elapsed) <= clockTolerance {
		return now
	}
	for _, s := range l.jobs.All() {
		if !l.queue.State(s.Key).Planned.IsZero() {
			l.queue.enqueue(s, controller.CauseTimer, controller.PriorityNormal)
		}
	}
	return now
}
