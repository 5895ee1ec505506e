package executor

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Rounds follow from events and from plans. A Job whose event was forgotten, by a
// defect of this program, would stand still for ever. The safety look asks about
// each Job that rests, once in a while, whether there is anything to do: one
// question, no request to the API server, and nothing else as long as the answer is
// no. What it finds is a defect; it is counted.

const (
	// lookPeriod is how often each Job is looked at, and lookStep how often some are.
	lookPeriod = 10 * time.Minute
	lookStep   = 10 * time.Second
	// clockTolerance is how far wall time may stray from elapsed time within a step.
	clockTolerance = time.Second
)

// suspect is a Job that rests although there is something to do. An event may be on
// its way; only if nothing has become of the Job by the next step was one missed.
type suspect struct {
	job       *jobState
	lastRound time.Time
}

// lookAround looks at all Jobs, over and over, until ctx ends. seen are the clocks
// when the first round may have been planned.
func (e *Executor) lookAround(ctx context.Context, seen clocks) {
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
		seen = e.clockSet(seen)
		for _, s := range suspects {
			e.confirm(ctx, s)
		}
		suspects = e.suspects(ctx, step, steps)
	}
}

// suspects looks at those Jobs whose turn it is.
func (e *Executor) suspects(ctx context.Context, step, steps int) []suspect {
	var found []suspect
	for _, s := range e.jobs.all() {
		if lookTurn(s.uid, steps) != step {
			continue
		}
		if last, why := e.look(ctx, s); why != "" {
			found = append(found, suspect{job: s, lastRound: last})
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

// confirm tells of a suspect of which nothing has become, and lets it have a round.
func (e *Executor) confirm(ctx context.Context, suspected suspect) {
	s := suspected.job
	last, why := e.look(ctx, s)
	if why == "" || !last.Equal(suspected.lastRound) {
		return
	}
	job := s.current()
	if job == nil {
		return
	}
	e.metrics.missedReconciles.WithLabelValues().Inc()
	e.log.WarnContext(ctx, telemetry.LogMissedReconcile, append(telemetry.JobAttrs(job), slog.String("due", why))...)
	if !e.cfg.SafetyLookReportsOnly {
		e.wake(s, telemetry.CauseSafetyLook, false)
	}
}

// look says what is to be done for a Job at rest that nothing is planned to do; ""
// if there is nothing, or that is not known. last is when the Job had its last round.
func (e *Executor) look(ctx context.Context, s *jobState) (last time.Time, why string) {
	if !e.atRest(s) {
		return time.Time{}, ""
	}
	s.mu.Lock()
	last, planned, stale := s.lastRound, s.planned, s.readDue || s.listDue
	s.mu.Unlock()
	if stale {
		return last, "reading what somebody else has changed"
	}
	snap, d, err := e.glance(ctx, s)
	switch {
	case err != nil:
		return last, "" // The Job will be looked at again.
	case d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_SETTLED:
		return last, cmp.Or(d.GetExplanation().GetSummary(), dispositionLabel(d.GetDisposition()))
	}
	requeue := e.requeueAfter(snap, d)
	if requeue > 0 && (planned.IsZero() || planned.After(time.Now().Add(min(requeue, maxWait)+lookStep))) {
		return last, fmt.Sprintf("a round in %v, which is not planned", requeue)
	}
	return last, ""
}

// atRest reports whether the Job is ours, and had no round lately, and none is on
// its way or planned for soon.
func (e *Executor) atRest(s *jobState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	soon := time.Now().Add(lookStep)
	return e.inCare(s.job) && wire.KnownCompletionMode(s.job) && !s.atWork && s.wakeCause == "" &&
		s.lastRound.Before(soon.Add(-2*lookStep)) && (s.planned.IsZero() || s.planned.After(soon)) && !s.notBefore.After(soon)
}

// glance decides on a Job without consequences.
func (e *Executor) glance(ctx context.Context, s *jobState) (snap snapshot, d *jobpolicyv1.DecideJobResponse, err error) {
	err = e.inSlot(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, e.cfg.DecisionTimeout)
		defer cancel()
		for _, rows := range []bool{false, true} {
			if snap, err = e.snapshot(s, rows); err != nil {
				return err
			}
			if d, err = e.cfg.Decider.DecideJob(ctx, snap.req); err != nil {
				return err
			}
			if err := e.check(snap.req, d); err != nil {
				return err
			}
			if d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
				return nil
			}
		}
		return nil
	})
	return snap, d, err
}

// clocks are the two clocks at one moment.
type clocks struct{ wall, elapsed time.Time }

func (e *Executor) readClocks() clocks { return clocks{wall: e.cfg.Now(), elapsed: time.Now()} }

// clockSet wakes the Jobs for which something is planned if the clock was set
// forward: what a deadline or a retry delay waits for may be there by now.
func (e *Executor) clockSet(before clocks) clocks {
	now := e.readClocks()
	if now.wall.Sub(before.wall)-now.elapsed.Sub(before.elapsed) <= clockTolerance {
		return now
	}
	for _, s := range e.jobs.all() {
		if s.hasPlan() {
			e.wake(s, telemetry.CauseTimer, false)
		}
	}
	return now
}

func (s *jobState) hasPlan() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.planned.IsZero()
}
