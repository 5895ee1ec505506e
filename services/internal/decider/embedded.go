package decider

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

// EmbeddedConfig configures an Embedded. Every field but Decide and DecideCron is required.
type EmbeddedConfig struct {
	TracerProvider trace.TracerProvider
	Registerer     prometheus.Registerer
	Logger         *slog.Logger
	// Decide replaces engine.DecideJob in tests.
	Decide func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	// DecideCron replaces cronjob.Decide in tests.
	DecideCron func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
}

// Embedded calls the engine in this process and reports each call in a span, in metrics and in the
// log. It turns the engine's errors into the gRPC statuses that the contract lists. The server uses
// it, too, so a caller gets the same answers from both. It is safe for concurrent use.
type Embedded struct {
	decide     func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	decideCron func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
	tracer     trace.Tracer
	metrics    *metrics
	log        *slog.Logger
}

// NewEmbedded returns an Embedded. It fails if its metrics are already registered.
func NewEmbedded(cfg EmbeddedConfig) (*Embedded, error) {
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register the engine's metrics: %w", err)
	}
	e := &Embedded{
		decide:     cfg.Decide,
		decideCron: cfg.DecideCron,
		tracer:     cfg.TracerProvider.Tracer(telemetry.ScopeName),
		metrics:    m,
		log:        cfg.Logger,
	}
	if e.decide == nil {
		e.decide = engine.DecideJob
	}
	if e.decideCron == nil {
		e.decideCron = cronjob.Decide
	}
	return e, nil
}

// DecideJob calls the engine. Every error has a gRPC status: INVALID_ARGUMENT with
// google.rpc.BadRequest, UNIMPLEMENTED or INTERNAL. If ctx is done before the engine is
// called, the status is that of ctx.
func (e *Embedded) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return decide(ctx, e, decision[*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse]{
		call: call[*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse]{
			kind: "job",
			name: telemetry.Name(req.GetJob().GetNamespace()) + "/" + telemetry.Name(req.GetJob().GetName()),
			f:    e.decide,
		},
		attributes: func() []attribute.KeyValue { return telemetry.JobAttributes(req.GetJob()) },
		describe:   telemetry.JobDecision,
	}, req)
}

// DecideCronJob is DecideJob for CronJobs.
func (e *Embedded) DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return decide(ctx, e, decision[*jobpolicyv1.DecideCronJobRequest, *jobpolicyv1.DecideCronJobResponse]{
		call: call[*jobpolicyv1.DecideCronJobRequest, *jobpolicyv1.DecideCronJobResponse]{
			kind: "cronjob",
			name: telemetry.Name(req.GetCronJob().GetNamespace()) + "/" + telemetry.Name(req.GetCronJob().GetName()),
			f:    e.decideCron,
		},
		attributes: func() []attribute.KeyValue { return telemetry.CronJobAttributes(req.GetCronJob()) },
		describe:   telemetry.CronJobDecision,
	}, req)
}

// A decision is a call that decides on a Job or a CronJob.
type decision[Req, Resp any] struct {
	call[Req, Resp]
	// attributes identify the object, in a span that is recorded.
	attributes func() []attribute.KeyValue
	// describe returns what to report about an answer.
	describe func(Resp) telemetry.Decision
}

// decide calls the engine and reports its decision.
func decide[Req, Resp any](ctx context.Context, e *Embedded, d decision[Req, Resp], req Req) (none Resp, _ error) {
	if err := ctx.Err(); err != nil {
		return none, refusal.FromContext(err)
	}
	ctx, span := e.tracer.Start(ctx, telemetry.SpanDecisionMade)
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(d.attributes()...)
	}
	start := time.Now()
	resp, err := d.run(ctx, e, req)
	if err != nil {
		span.SetStatus(codes.Error, status.Convert(err).Message())
		return none, err
	}
	made := d.describe(resp)
	e.metrics.decided(ctx, made, time.Since(start))
	made.Record(span)
	e.log.DebugContext(ctx, "decision made", d.kind, d.name,
		"disposition", made.Disposition, "rule", made.Rule, "summary", made.Summary)
	return resp, nil
}

// A call is one call of the engine. The log names its kind and its name.
type call[Req, Resp any] struct {
	kind, name string
	f          func(Req) (Resp, error)
}

// run calls the engine, and counts and logs an error.
func (c call[Req, Resp]) run(ctx context.Context, e *Embedded, req Req) (none Resp, _ error) {
	resp, err := c.recovered(ctx, e, req)
	if err != nil {
		err = refusal.FromEngine(err)
		e.metrics.refused(err)
		e.log.DebugContext(ctx, "request refused", c.kind, c.name, "error", err)
		return none, err
	}
	return resp, nil
}

// recovered turns a panic of the engine into an error. The engine promises not to
// panic. If it does, only this request fails, and the process goes on.
func (c call[Req, Resp]) recovered(ctx context.Context, e *Embedded, req Req) (_ Resp, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.metrics.panics.Inc()
			e.log.ErrorContext(ctx, "engine panicked", c.kind, c.name, "panic", p, "stack", string(debug.Stack()))
			err = refusal.ErrInternal
		}
	}()
	return c.f(req)
}
