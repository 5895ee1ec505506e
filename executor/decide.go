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

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/metrics"
	"jobpolicy.dev/executor/state"
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
	slots   chan struct{} // Bounds the Jobs that are read and decided on at once.
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

// decide asks about a Job. errStale: something has to be read or adopted before the Job is
// decided on.
func (d *decider) decide(ctx context.Context, s *state.Job) (snapshot, *jobpolicyv1.DecideJobResponse, error) {
	return d.complete(ctx, s, func(snap snapshot) (*jobpolicyv1.DecideJobResponse, error) {
		if s.Version.MustRefresh() {
			return nil, errStale
		}
		return d.ask(ctx, s, snap)
	})
}

// try decides on a Job without consequences: no metric, no event, no limit changes.
func (d *decider) try(ctx context.Context, s *state.Job) (snapshot, *jobpolicyv1.DecideJobResponse, error) {
	return d.complete(ctx, s, func(snap snapshot) (*jobpolicyv1.DecideJobResponse, error) {
		decision, err := controller.Try(ctx, d.base, d.cfg.Decider.DecideJob, snap.req)
		if err != nil {
			return nil, err
		}
		return decision, d.check(decision)
	})
}

// complete makes a request and asks. If the engine wants rows of active pods, complete makes a
// second request with them and asks once more. It returns the decision and the snapshot that
// the decision is about.
func (d *decider) complete(ctx context.Context, s *state.Job, ask func(snapshot) (*jobpolicyv1.DecideJobResponse, error)) (snap snapshot, decision *jobpolicyv1.DecideJobResponse, err error) {
	release, err := d.slot(ctx)
	if err != nil {
		return snapshot{}, nil, err
	}
	defer release()
	decision, err = answer.Complete(func(activePods bool) (*jobpolicyv1.DecideJobResponse, error) {
		if snap, err = d.snapshot(s, activePods); err != nil {
			return nil, err
		}
		return ask(snap)
	})
	if errors.Is(err, answer.ErrIncomplete) {
		err = fmt.Errorf("%w: %w", err, controller.ErrBadAnswer)
	}
	return snap, decision, err
}

// ask asks the engine and checks what it answers.
func (d *decider) ask(ctx context.Context, s *state.Job, snap snapshot) (*jobpolicyv1.DecideJobResponse, error) {
	started := time.Now()
	decision, err := controller.Ask(ctx, d.base, d.cfg.Decider.DecideJob, snap.req)
	if err != nil {
		d.askFailed(s, snap, err)
		return nil, err
	}
	s.Rows.Accepted(len(snap.req.GetUnaccountedPods()), d.cfg.rowLimit(snap.job))
	if err := d.check(decision); err != nil {
		return nil, err
	}
	label := dispositionLabel(decision.GetDisposition())
	metrics.Observe(ctx, d.metrics.duration.WithLabelValues(label), time.Since(started).Seconds())
	d.metrics.decisions.WithLabelValues(label, cmp.Or(decision.GetVerdict().GetRule().Name(), "none")).Inc()
	d.base.Logger.LogAttrs(ctx, slog.LevelDebug, "decided",
		slog.String("namespace", snap.job.Namespace), slog.String("job", snap.job.Name), slog.String("uid", string(snap.job.UID)),
		slog.String("disposition", label), slog.String("summary", decision.GetExplanation().GetSummary()))
	return decision, nil
}

// askFailed handles errors that concern this Job alone: the engine rejects the Job, or its
// request is too large. Each rejected generation of the Job gets one event.
func (d *decider) askFailed(s *state.Job, snap snapshot, err error) {
	switch {
	case errors.Is(err, controller.ErrRejected):
		if s.Decisions.Rejected(snap.job.Generation) {
			d.base.Recorder.Event(snap.job, corev1.EventTypeWarning, controller.EventPolicyRejected, controller.Rejection(err))
		}
	case status.Code(err) == codes.ResourceExhausted && tooLarge(err):
		s.Rows.Refused(len(snap.req.GetUnaccountedPods()), d.cfg.Rows.Least)
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
