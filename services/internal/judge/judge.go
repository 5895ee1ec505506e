// Package judge asks the engine in this process, and says what came of it: as a
// span, as metrics, and, where there is no decision, as the gRPC status that the
// contract lists for it. The server and the embedded decider both go through
// it, so a caller cannot tell them apart by their answers.
package judge

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/telemetry"
)

// Config is what a Judge needs. Every field is required but Decide.
type Config struct {
	TracerProvider trace.TracerProvider
	Registerer     prometheus.Registerer
	Logger         *slog.Logger
	// Decide stands in for engine.DecideJob, in tests.
	Decide func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
}

// A Judge decides on Jobs. It is safe for concurrent use.
type Judge struct {
	decide  func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	tracer  trace.Tracer
	metrics *metrics
	log     *slog.Logger
}

// New returns a Judge. It fails when its metrics are already registered.
func New(cfg Config) (*Judge, error) {
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register the engine's metrics: %w", err)
	}
	decide := cfg.Decide
	if decide == nil {
		decide = engine.DecideJob
	}
	return &Judge{
		decide:  decide,
		tracer:  cfg.TracerProvider.Tracer(telemetry.ScopeName),
		metrics: m,
		log:     cfg.Logger,
	}, nil
}

// DecideJob asks the engine. Every error has a gRPC status: INVALID_ARGUMENT with
// google.rpc.BadRequest, UNIMPLEMENTED, INTERNAL, or the context's own when it is
// done before the engine is asked.
func (j *Judge) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	ctx, span := j.tracer.Start(ctx, telemetry.SpanDecisionMade,
		trace.WithAttributes(telemetry.JobAttributes(req.GetJob())...))
	defer span.End()
	start := time.Now()
	resp, err := j.ask(ctx, req)
	if err != nil {
		err = ToStatus(err)
		j.metrics.refused(err)
		span.SetStatus(codes.Error, status.Convert(err).Message())
		j.log.DebugContext(ctx, "request refused", "job", jobName(req), "error", err)
		return nil, err
	}
	j.metrics.decided(resp, time.Since(start))
	telemetry.RecordDecision(span, resp)
	j.log.DebugContext(ctx, "decision made", "job", jobName(req),
		"disposition", telemetry.Disposition(resp.GetDisposition()),
		"rule", telemetry.DecidingRule(resp.GetExplanation()),
		"summary", resp.GetExplanation().GetSummary())
	return resp, nil
}

// ask turns a panic of the engine into an error. The engine promises none; if it
// breaks that promise, one request is lost, and not the process.
func (j *Judge) ask(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (_ *jobpolicyv1.DecideJobResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			j.metrics.panics.Inc()
			j.log.ErrorContext(ctx, "engine panicked", "job", jobName(req), "panic", p, "stack", string(debug.Stack()))
			err = ErrInternal
		}
	}()
	return j.decide(req)
}

func jobName(req *jobpolicyv1.DecideJobRequest) string {
	return req.GetJob().GetNamespace() + "/" + req.GetJob().GetName()
}
