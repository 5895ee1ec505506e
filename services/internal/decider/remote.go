// Package decider asks the policy engine: Remote over gRPC, Embedded in this process, and Fallback
// the second of two if the first cannot be reached. All satisfy executor.Decider and give the same
// answers.
package decider

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/telemetry"
)

// How many bytes the engine may send before they are read: of one call, and of all calls.
// Fixed windows avoid gRPC's bandwidth probes, about one ping for each small message.
const (
	streamWindow     = 1 << 20
	connectionWindow = 4 << 20
)

// RemoteConfig configures a Remote. Every field but FailFast and Answered is required.
type RemoteConfig struct {
	// Target is a gRPC target: host:port, dns:///host:port, unix:///path.
	Target         string
	Credentials    credentials.TransportCredentials
	TracerProvider trace.TracerProvider
	// Timeout bounds each call, the wait for a connection included. The caller's
	// own deadline counts if it is earlier.
	Timeout time.Duration
	// FailFast fails a call at once if there is no connection to the engine, or if it
	// breaks, instead of waiting for a connection and repeating the call.
	FailFast bool
	// Answered is called after each answer, with the build of the engine that gave it. nil:
	// nobody is told.
	Answered func(jobpolicyv1grpc.Build)
}

// Remote asks an engine over gRPC.
type Remote struct {
	cfg    RemoteConfig
	conn   *grpc.ClientConn
	policy jobpolicyv1grpc.PolicyServiceClient
	health healthv1.HealthClient
}

// NewRemote returns a Remote. It connects at the first call.
func NewRemote(cfg RemoteConfig) (*Remote, error) {
	conn, err := grpc.NewClient(cfg.Target, dialOptions(cfg)...)
	if err != nil {
		return nil, fmt.Errorf("engine address %q: %w", cfg.Target, err)
	}
	return &Remote{cfg, conn, jobpolicyv1grpc.NewPolicyServiceClient(conn), healthv1.NewHealthClient(conn)}, nil
}

func dialOptions(cfg RemoteConfig) []grpc.DialOption {
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(cfg.Credentials),
		grpc.WithDefaultServiceConfig(jobpolicyv1grpc.ServiceConfig),
		jobpolicyv1grpc.WithLookups(),
		jobpolicyv1grpc.WithReconnects(),
		jobpolicyv1grpc.WithPings(),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(jobpolicyv1grpc.MaxMessageBytes), grpc.MaxCallSendMsgSize(jobpolicyv1grpc.MaxMessageBytes)),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connectionWindow),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithTracerProvider(cfg.TracerProvider),
			otelgrpc.WithPropagators(telemetry.Propagator()),
			// Readiness probes ask these again and again.
			otelgrpc.WithFilter(filters.None(filters.HealthCheck(), filters.MethodName("GetServerInfo"))),
		)),
	}
	if cfg.FailFast {
		opts = append(opts, grpc.WithDisableRetry())
	}
	return opts
}

// DecideJob asks the engine. Errors have a gRPC status; UNAVAILABLE says that the
// engine could not be reached in time, DEADLINE_EXCEEDED that it did not answer.
func (r *Remote) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return ask(ctx, r, r.policy.DecideJob, req)
}

// DecideCronJob is DecideJob for CronJobs.
func (r *Remote) DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return ask(ctx, r, r.policy.DecideCronJob, req)
}

// ask makes one call.
func ask[Req, Resp any](ctx context.Context, r *Remote, call func(context.Context, *Req, ...grpc.CallOption) (*Resp, error), req *Req) (*Resp, error) {
	bounded, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	var header metadata.MD
	resp, err := call(bounded, req, grpc.WaitForReady(!r.cfg.FailFast), grpc.Header(&header))
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	if r.cfg.Answered != nil {
		r.cfg.Answered(jobpolicyv1grpc.BuildOf(header))
	}
	return resp, nil
}

// ServerInfo asks the engine what it supports.
func (r *Remote) ServerInfo(ctx context.Context) (*jobpolicyv1.GetServerInfoResponse, error) {
	return r.policy.GetServerInfo(ctx, &jobpolicyv1.GetServerInfoRequest{}, grpc.WaitForReady(true))
}

// explain turns DEADLINE_EXCEEDED into UNAVAILABLE if there is no connection to the
// engine. The transport does not distinguish that from an engine that is slow.
func (r *Remote) explain(ctx context.Context, err error) error {
	if status.Code(err) != codes.DeadlineExceeded || ctx.Err() != nil || r.conn.GetState() == connectivity.Ready {
		return err
	}
	return status.Errorf(codes.Unavailable, "engine %s not reached within %s: %s", r.cfg.Target, r.cfg.Timeout, status.Convert(err).Message())
}

// Check returns nil when the engine says that it is serving. It waits for an
// answer as long as the context lasts.
func (r *Remote) Check(ctx context.Context) error {
	resp, err := r.health.Check(ctx, &healthv1.HealthCheckRequest{Service: jobpolicyv1grpc.PolicyService_ServiceDesc.ServiceName},
		grpc.WaitForReady(true))
	// An engine without a health service has answered, too.
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	if err != nil {
		return fmt.Errorf("engine %s does not answer: %w", r.cfg.Target, err)
	}
	if resp.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return fmt.Errorf("engine %s is %s", r.cfg.Target, resp.GetStatus())
	}
	return nil
}

// Close ends all connections.
func (r *Remote) Close() error { return r.conn.Close() }
