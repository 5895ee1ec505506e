package executor

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Reconciles follow from events and from planned requeues. A Job whose event was
// forgotten, by a defect of this program, would stand still for ever. The safety look asks
// about each Job at rest, once in a while, whether there is anything to do: one question,
// no request to the API server, and nothing else as long as the answer is no. What it
// finds is a defect; it is counted.

const (
	// lookPeriod is how often each Job is looked at, and lookStep how often some are.
	lookPeriod = 10 * time.Minute
	lookStep   = 10 * time.Second
	// clockTolerance is how far wall time may stray from elapsed time within a step.
	clockTolerance = time.Second
)

// suspect is a Job at rest although there is something to do. An event may be on its way;
// only if the Job is not reconciled until the next step was one missed.
type suspect struct {
	job  *state.Job
	last time.Time // When it was reconciled last.
}

// safetyLook is the safety look.
type safetyLook struct {
	base    *controller.Controller
	cfg     *Config
	scope   state.Scope
	jobs    *state.Jobs
	queue   jobQueue
	decider *decider
	metrics *jobMetrics
	seen    clocks
}

// newSafetyLook reads the clocks: no reconcile was planned before.
func newSafetyLook(base *controller.Controller, cfg *Config, scope state.Scope, jobs *state.Jobs, queue jobQueue, d *decider, own *jobMetrics) *safetyLook {
	l := &safetyLook{base: base, cfg: cfg, scope: scope, jobs: jobs, queue: queue, decider: d, metrics: own}
	l.seen = l.readClocks()
	return l
}

// run looks at all Jobs, over and over, until ctx ends.
func (l *safetyLook) run(ctx context.Context) {
	ticker := time.NewTicker(lookStep)
	defer ticker.Stop()
	const steps = int(lookPeriod / lookStep)
	var suspects []suspect
	for step := 0; ; step = (step + 1) % steps {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		l.seen = l.clockSet(l.seen)
		for _, s := range suspects {
			l.confirm(ctx, s)
		}
		suspects = l.suspects(ctx, step, steps)
	}
}

// suspects looks at those Jobs whose turn it is.
func (l *safetyLook) suspects(ctx context.Context, step, steps int) []suspect {
	var found []suspect
	for _, s := range l.jobs.All() {
		if lookTurn(s.UID, steps) != step {
			continue
		}
		if last, why := l.look(ctx, s); why != "" {
			found = append(found, suspect{job: s, last: last})
		}
	}
	return found
}

// lookTurn spreads Jobs over the steps of a period.
func lookTurn(uid types.UID, steps int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // Never fails.
	return int(h.Sum32() % uint32(steps))
}

// confirm reports and enqueues a suspect that was not reconciled since.
func (l *safetyLook) confirm(ctx context.Context, suspected suspect) {
	s := suspected.job
	last, why := l.look(ctx, s)
	if why == "" || !last.Equal(suspected.last) {
		return
	}
	job := s.Version.Current()
	if job == nil {
		return
	}
	l.metrics.missedReconciles.WithLabelValues().Inc()
	l.base.Logger.WarnContext(ctx, telemetry.LogMissedReconcile, append(telemetry.JobAttrs(job), slog.String("due", why))...)
	if !l.cfg.SafetyLookReportsOnly {
		l.queue.enqueue(s, causeSafety, controller.PriorityNormal)
	}
}

// look says what is to be done for a Job at rest that nothing is planned to do; "" if
// there is nothing, or that is not known. last is when the Job was reconciled last.
func (l *safetyLook) look(ctx context.Context, s *state.Job) (last time.Time, why string) {
	queued := l.queue.State(s.UID)
	if !l.atRest(s, queued) {
		return time.Time{}, ""
	}
	if s.Version.IsStale(state.StaleJob | state.StalePods) {
		return queued.Last, "reading what somebody else has changed"
	}
	snap, d, err := l.decider.try(ctx, s)
	switch {
	case err != nil:
		return queued.Last, "" // The Job will be looked at again.
	case d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_SETTLED:
		return queued.Last, cmp.Or(d.GetExplanation().GetSummary(), dispositionLabel(d.GetDisposition()))
	}
	requeue := l.decider.requeueAfter(snap, d)
	if requeue > 0 && (queued.Planned.IsZero() || queued.Planned.After(time.Now().Add(min(requeue, maxRequeueAfter)+lookStep))) {
		return queued.Last, fmt.Sprintf("a reconcile in %v, which is not planned", requeue)
	}
	return queued.Last, ""
}

// atRest reports whether the Job is to be reconciled, was not lately, and is neither due
// nor planned for soon.
func (l *safetyLook) atRest(s *state.Job, queued controller.State) bool {
	job := s.Version.Current()
	if !l.scope.Reconciles(job) || !wire.KnownCompletionMode(job) || queued.Running || queued.Pending {
		return false
	}
	soon := time.Now().Add(lookStep)
	rested := queued.Last.Before(soon.Add(-2 * lookStep))
	return rested && (queued.Planned.IsZero() || queued.Planned.After(soon)) && !queued.BackoffUntil.After(soon)
}

// clocks are the two clocks at one moment.
type clocks struct{ wall, elapsed time.Time }

func (l *safetyLook) readClocks() clocks { return clocks{wall: l.cfg.Now(), elapsed: time.Now()} }

// clockSet enqueues the Jobs for which something is planned if the clock was set forward:
// what a deadline or a retry delay waits for may be there by now.
func (l *safetyLook) clockSet(before clocks) clocks {
	now := l.readClocks()
	if now.wall.Sub(before.wall)-now.elapsed.Sub(before.elapsed) <= clockTolerance {
		return now
	}
	for _, s := range l.jobs.All() {
		if !l.queue.State(s.UID).Planned.IsZero() {
			l.queue.enqueue(s, controller.CauseTimer, controller.PriorityNormal)
		}
	}
	return now
}
