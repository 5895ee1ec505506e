package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/nodes"
	"jobpolicy.dev/executor/internal/policy"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

// decider asks the engine about Jobs.
type decider struct {
	base    *controller.Controller
	cfg     *Config
	metrics *decisionMetrics
	report  *reporter
	// policies know the options of Jobs; nil: only those that Jobs hold themselves.
	policies *policy.Policies
	nodes    *nodes.Nodes
	slots    chan struct{} // Bounds the Jobs that are read and decided on at once.
}

// slot takes one of the slots. If ctx ends first, it returns the error of ctx. Otherwise the
// caller must call release once. Calls that may hang in one namespace, such as a write that
// waits for a webhook, take no slot, so that the Jobs of other namespaces do not wait for them.
func (d *decider) slot(ctx context.Context) (release func(), err error) {
	select {
	case d.slots <- struct{}{}:
		return func() { <-d.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A purpose is what a decision is asked for.
type purpose int

const (
	// toApply: something may have to be read or adopted before the Job is decided on (errStale).
	toApply purpose = iota
	// toCompare: nobody carries the decision out (shadow mode).
	toCompare
	// toCheck: nobody carries the decision out, and asking for it has no consequences: no metric, no
	// event, no limit changes.
	toCheck
)

// decide makes a request and asks. If the engine wants rows of active pods, decide makes a
// second request with them and asks once more. It returns the decision and the snapshot that
// the decision is about.
func (d *decider) decide(ctx context.Context, s *tracker.Job, p purpose) (snap snapshot, decision *jobpolicyv1.DecideJobResponse, err error) {
	release, err := d.slot(ctx)
	if err != nil {
		return snapshot{}, nil, err
	}
	defer release()
	decision, err = answer.Complete(func(activePods bool) (*jobpolicyv1.DecideJobResponse, error) {
		if snap, err = d.snapshot(s, activePods); err != nil {
			return nil, err
		}
		return d.ask(ctx, s, snap, p)
	})
	if errors.Is(err, answer.ErrIncomplete) {
		err = fmt.Errorf("%w: %w", err, controller.ErrBadAnswer)
	}
	return snap, decision, err
}

// ask asks the engine and checks what it answers.
func (d *decider) ask(ctx context.Context, s *tracker.Job, snap snapshot, p purpose) (decision *jobpolicyv1.DecideJobResponse, err error) {
	started := time.Now()
	switch {
	case p == toCheck:
		decision, err = controller.Try(ctx, d.base, d.base.Decider.DecideJob, snap.req)
	case p == toApply && s.MustRefresh():
		return nil, errStale
	default:
		if decision, err = controller.Ask(ctx, d.base, d.base.Decider.DecideJob, snap.req); err != nil {
			d.askFailed(s, snap, err)
			break
		}
		s.RowsAccepted(len(snap.req.GetUnaccountedPods()), d.cfg.rowLimit(snap.job))
	}
	if err != nil {
		return nil, err
	}
	if err := wire.CheckDecision(snap.req, decision); err != nil {
		return nil, fmt.Errorf("%w: %w", err, controller.ErrBadAnswer)
	}
	if p != toCheck {
		d.decided(ctx, snap, decision, time.Since(started))
	}
	return decision, nil
}

// decided counts and logs a decision.
func (d *decider) decided(ctx context.Context, snap snapshot, decision *jobpolicyv1.DecideJobResponse, took time.Duration) {
	label := dispositionLabel(decision.GetDisposition())
	telemetry.Observe(ctx, d.metrics.duration.WithLabelValues(label), took.Seconds())
	d.metrics.decisions.WithLabelValues(label, cmp.Or(decision.GetVerdict().GetRule().Name(), "none")).Inc()
	d.base.Logger.LogAttrs(ctx, slog.LevelDebug, "decided",
		slog.String("namespace", snap.job.Namespace), slog.String("job", snap.job.Name), slog.String("uid", string(snap.job.UID)),
		slog.String("disposition", label), slog.String("summary", decision.GetExplanation().GetSummary()))
}

// askFailed handles errors that concern this Job alone: the engine rejects the Job, or its
// request is too large. Each rejected generation of the Job gets one event.
func (d *decider) askFailed(s *tracker.Job, snap snapshot, err error) {
	switch {
	case errors.Is(err, controller.ErrRejected):
		if s.Rejected(snap.job.Generation, jobpolicyv1grpc.ReasonName(jobpolicyv1grpc.ReasonOf(err))) {
			d.base.Recorder.Event(snap.job, corev1.EventTypeWarning, controller.EventPolicyRejected, controller.Rejection(err))
		}
	case status.Code(err) == codes.ResourceExhausted && tooLarge(err):
		s.RowsRefused(len(snap.req.GetUnaccountedPods()), d.cfg.Rows.Least)
	}
}

// tooLarge reports whether RESOURCE_EXHAUSTED is about the size of a message. The engine
// always gives a reason. gRPC clients and proxies give none, and use this code only for the
// size of messages.
func tooLarge(err error) bool {
	switch jobpolicyv1grpc.ReasonOf(err) {
	case jobpolicyv1.ErrorReason_ERROR_REASON_UNSPECIFIED,
		jobpolicyv1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE,
		jobpolicyv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE:
		return true
	default:
		return false
	}
}
