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
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/refusal"
	"jobpolicy.dev/services/internal/telemetry"
)

// Config is what a Judge needs. Every field is required but Decide and
// DecideCron.
type Config struct {
	TracerProvider trace.TracerProvider
	Registerer     prometheus.Registerer
	Logger         *slog.Logger
	// Decide stands in for engine.DecideJob, in tests.
	Decide func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	// DecideCron stands in for cronjob.Decide, in tests.
	DecideCron func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
}

// A Judge decides on Jobs and CronJobs. It is safe for concurrent use.
type Judge struct {
	decide     func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	decideCron func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
	tracer     trace.Tracer
	metrics    *metrics
	log        *slog.Logger
}

// New returns a Judge. It fails when its metrics are already registered.
func New(cfg Config) (*Judge, error) {
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register the engine's metrics: %w", err)
	}
	j := &Judge{
		decide:     cfg.Decide,
		decideCron: cfg.DecideCron,
		tracer:     cfg.TracerProvider.Tracer(telemetry.ScopeName),
		metrics:    m,
		log:        cfg.Logger,
	}
	if j.decide == nil {
		j.decide = engine.DecideJob
	}
	if j.decideCron == nil {
		j.decideCron = cronjob.Decide
	}
	return j, nil
}

// DecideJob asks the engine. Every error has a gRPC status: INVALID_ARGUMENT with
// google.rpc.BadRequest, UNIMPLEMENTED, INTERNAL, or the context's own when it is
// done before the engine is asked.
func (j *Judge) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return hear(ctx, j, hearing[*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse]{
		attributes: telemetry.JobAttributes(req.GetJob()),
		kind:       "job",
		name:       telemetry.Name(req.GetJob().GetNamespace()) + "/" + telemetry.Name(req.GetJob().GetName()),
		ask:        j.decide,
		ruling:     telemetry.JobRuling,
	}, req)
}

// DecideCronJob is DecideJob for CronJobs.
func (j *Judge) DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return hear(ctx, j, hearing[*jobpolicyv1.DecideCronJobRequest, *jobpolicyv1.DecideCronJobResponse]{
		attributes: telemetry.CronJobAttributes(req.GetCronJob()),
		kind:       "cronjob",
		name:       telemetry.Name(req.GetCronJob().GetNamespace()) + "/" + telemetry.Name(req.GetCronJob().GetName()),
		ask:        j.decideCron,
		ruling:     telemetry.CronJobRuling,
	}, req)
}

// A hearing is what the two kinds of requests have each of their own.
type hearing[Req, Resp any] struct {
	attributes []attribute.KeyValue
	kind, name string
	ask        func(Req) (Resp, error)
	ruling     func(Resp) telemetry.Ruling
}

// hear asks the engine and says what came of it.
func hear[Req, Resp any](ctx context.Context, j *Judge, h hearing[Req, Resp], req Req) (none Resp, _ error) {
	if err := ctx.Err(); err != nil {
		return none, refusal.FromContext(err)
	}
	ctx, span := j.tracer.Start(ctx, telemetry.SpanDecisionMade, trace.WithAttributes(h.attributes...))
	defer span.End()
	start := time.Now()
	resp, err := ask(ctx, j, h, req)
	if err != nil {
		err = refusal.FromEngine(err)
		j.metrics.refused(err)
		span.SetStatus(codes.Error, status.Convert(err).Message())
		j.log.DebugContext(ctx, "request refused", h.kind, h.name, "error", err)
		return none, err
	}
	ruling := h.ruling(resp)
	j.metrics.decided(ruling, time.Since(start))
	ruling.Record(span)
	j.log.DebugContext(ctx, "decision made", h.kind, h.name,
		"disposition", ruling.Disposition, "rule", ruling.Rule, "summary", ruling.Summary)
	return resp, nil
}

// ask turns a panic of the engine into an error. The engine promises none; if it
// breaks that promise, one request is lost, and not the process.
func ask[Req, Resp any](ctx context.Context, j *Judge, h hearing[Req, Resp], req Req) (_ Resp, err error) {
	defer func() {
		if p := recover(); p != nil {
			j.metrics.panics.Inc()
			j.log.ErrorContext(ctx, "engine panicked", h.kind, h.name, "panic", p, "stack", string(debug.Stack()))
			err = refusal.ErrInternal
		}
	}()
	return h.ask(req)
}
