package decider

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/executor"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Fallback asks the first decider, and the second if the first cannot be reached.
type Fallback struct {
	first  executor.Decider
	second executor.Decider
	log    *slog.Logger
	away   atomic.Bool
	active prometheus.Gauge
}

// NewFallback returns a Fallback. It fails when its metric is already registered.
func NewFallback(first, second executor.Decider, r prometheus.Registerer, log *slog.Logger) (*Fallback, error) {
	f := &Fallback{
		first: first, second: second, log: log,
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "jobpolicy_executor_engine_fallback_active",
			Help: "1 while decisions are made in this process because the engine is away.",
		}),
	}
	return f, r.Register(f.active)
}

// DecideJob asks the first decider, and the second after UNAVAILABLE or
// DEADLINE_EXCEEDED. Any other error is an answer, also UNIMPLEMENTED: an older first
// decider may refuse what the second knows, and is to be upgraded.
func (f *Fallback) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return fallBack(ctx, f, req, f.first.DecideJob, f.second.DecideJob)
}

// DecideCronJob is DecideJob for CronJobs.
func (f *Fallback) DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return fallBack(ctx, f, req, f.first.DecideCronJob, f.second.DecideCronJob)
}

func fallBack[Req, Resp any](ctx context.Context, f *Fallback, req Req, first, second func(context.Context, Req) (Resp, error)) (Resp, error) {
	resp, err := first(ctx, req)
	if ctx.Err() != nil {
		return resp, err // says nothing about the engine
	}
	if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
		f.note(ctx, false, nil)
		return resp, err
	}
	f.note(ctx, true, err)
	return second(ctx, req)
}

// note logs a change, once.
func (f *Fallback) note(ctx context.Context, away bool, cause error) {
	if f.away.Swap(away) == away {
		return
	}
	if away {
		f.active.Set(1)
		f.log.WarnContext(ctx, "engine away, deciding in this process", "error", cause)
		return
	}
	f.active.Set(0)
	f.log.InfoContext(ctx, "engine back")
}
