package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/telemetry"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var (
	// errEngine: there is no decision. It is logged where it occurs.
	errEngine = errors.New("no decision from the policy engine")
	// errRejected: there will be none before the Job or the engine changes.
	errRejected = errors.New("the policy engine rejects the job")
	// errBadAnswer: the answer is not one that the contract allows.
	errBadAnswer = errors.New("answer of the policy engine breaks the contract")
)

// EventPolicyRejected is the reason of the event on a Job that the engine will
// not decide on.
const EventPolicyRejected = "PolicyRejected"

// largeRequest is the default of Config.LargeRequest.
const largeRequest = 1 << 20

// engineLogPeriod is how often an engine that stays away is logged again.
const engineLogPeriod = 30 * time.Second

func asksForSlowRetry(err error) bool { return errors.Is(err, errRejected) }

// ask calls the Decider and checks what it answers: a client distrusts its
// server.
func (e *Executor) ask(ctx context.Context, s *jobState, snap snapshot) (*jobpolicyv1.DecideJobResponse, error) {
	ctx, end := e.tracer.Span(ctx, telemetry.SpanDecisionRequested, telemetry.AttrRequestID.String(snap.req.GetRequestId()))
	ctx, cancel := context.WithTimeout(ctx, e.cfg.DecisionTimeout)
	defer cancel()
	started := time.Now()
	d, err := e.cfg.Decider.DecideJob(ctx, snap.req)
	end(err)
	if err != nil {
		return nil, e.engineFailed(ctx, s, snap, err)
	}
	e.engineAnswered(ctx)
	s.rowsAccepted(len(snap.req.GetUnaccountedPods()), e.rowLimit(snap.job))
	if err := e.check(snap.req, d); err != nil {
		return nil, err
	}
	label := dispositionLabel(d.GetDisposition())
	e.metrics.decisionDuration.WithLabelValues(label).Observe(time.Since(started).Seconds())
	e.metrics.decisions.WithLabelValues(label, cmp.Or(d.GetVerdict().GetRule(), "none")).Inc()
	e.debug(ctx, "decided", snap.job, slog.String("disposition", label), slog.String("summary", d.GetExplanation().GetSummary()))
	return d, nil
}

func (e *Executor) engineFailed(ctx context.Context, s *jobState, snap snapshot, err error) error {
	code := status.Code(err)
	e.metrics.shared.EngineFailed(err)
	switch code {
	case codes.InvalidArgument, codes.Unimplemented:
		e.engineAnswered(ctx)
		e.tellRejected(s, snap.job, err)
		return fmt.Errorf("%w: %w", errRejected, err)
	case codes.ResourceExhausted:
		// Either the message is too large or the engine has too much to do. Only a
		// large one can be the former.
		if proto.Size(snap.req) > e.cfg.LargeRequest {
			s.rowsRefused(len(snap.req.GetUnaccountedPods()), e.cfg.LeastRows)
		}
	case codes.Canceled:
		return fmt.Errorf("%w: %w", errEngine, err)
	}
	e.engine.failed(ctx, e.log, err)
	s.awaitEngine()
	return fmt.Errorf("%w: %w", errEngine, err)
}

// tellRejected records the event once for each generation of the spec.
func (e *Executor) tellRejected(s *jobState, job *batchv1.Job, err error) {
	s.mu.Lock()
	told := s.rejected == job.Generation && job.Generation != 0
	s.rejected = job.Generation
	s.mu.Unlock()
	if !told {
		e.recorder.Event(job, corev1.EventTypeWarning, EventPolicyRejected, status.Convert(err).Message())
	}
}

// engineHealth turns many failed calls into few log lines.
type engineHealth struct {
	mu     sync.Mutex
	down   bool
	calls  int
	logged time.Time
}

func (h *engineHealth) failed(ctx context.Context, log *slog.Logger, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = true
	h.calls++
	if time.Since(h.logged) < engineLogPeriod {
		return
	}
	h.logged = time.Now()
	log.ErrorContext(ctx, "policy engine does not answer, jobs are on hold", slog.Int("failedCalls", h.calls), slog.Any("error", err))
}

// answered reports whether the engine had been away.
func (h *engineHealth) answered(ctx context.Context, log *slog.Logger) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.down {
		return false
	}
	log.InfoContext(ctx, "policy engine answers again", slog.Int("failedCalls", h.calls))
	h.down, h.calls, h.logged = false, 0, time.Time{}
	return true
}

// engineAnswered takes in that the engine is there. If it had been away, no Job
// waits any longer because of that.
func (e *Executor) engineAnswered(ctx context.Context) {
	if !e.engine.answered(ctx, e.log) {
		return
	}
	for _, s := range e.jobs.all() {
		if s.engineBack(e.cfg.MaxAPIBackoff) {
			e.wake(s, telemetry.CauseRetry, true)
		}
	}
}
