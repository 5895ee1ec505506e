package policyserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/stats"

	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/judge"
	"jobpolicy.dev/services/internal/telemetry"
)

// Transport settings that nobody needs to turn.
const (
	// A client may ping this often, also when it has no call open.
	minClientPing = 10 * time.Second
	// The server pings a silent client to learn whether it is still there.
	pingAfter   = time.Minute
	pingTimeout = 20 * time.Second
	// After its age is reached, a connection's calls get this long to end.
	connectionAgeGrace = time.Minute
	// So many bytes of a call may be sent before anybody reads them, and of a
	// connection's calls before they arrive. Were they not said, gRPC would learn
	// them by pings, about one with each small message.
	streamWindow     = 1 << 20
	connectionWindow = 4 << 20
)

// ServiceName is the name under which health is told, beside the empty one.
var ServiceName = jobpolicyv1grpc.PolicyService_ServiceDesc.ServiceName

// Config is what a Server needs. Every field is required.
type Config struct {
	Judge          *judge.Judge
	Credentials    credentials.TransportCredentials
	TracerProvider trace.TracerProvider
	Registerer     prometheus.Registerer
	Logger         *slog.Logger
	// Version is told by GetServerInfo.
	Version string
	// MaxConcurrentCalls is how many calls are decoded and decided on at a time;
	// fewer if they are large. 1 or more.
	MaxConcurrentCalls int
	// MaxConnectionAge is after how long a client is asked to connect anew, so
	// that clients spread over new replicas. Each connection's differs by up to
	// a tenth.
	MaxConnectionAge time.Duration
}

// maxStreams is how many calls one connection may have open.
const maxStreams = 1000

// A Server serves the policy engine.
type Server struct {
	grpc   *grpc.Server
	health *health.Server
}

// New returns a Server that does not listen yet. It fails when its metrics are
// already registered.
func New(cfg Config) (*Server, error) {
	calls, err := newCallMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register the server's metrics: %w", err)
	}
	s := &Server{health: health.NewServer()}
	guard := newGuard(cfg.MaxConcurrentCalls, cfg.Logger)
	s.grpc = grpc.NewServer(
		grpc.Creds(cfg.Credentials),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxSendMsgSize(MaxMessageBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minClientPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge:      cfg.MaxConnectionAge,
			MaxConnectionAgeGrace: connectionAgeGrace,
			Time:                  pingAfter,
			Timeout:               pingTimeout,
		}),
		grpc.StatsHandler(tracing(cfg.TracerProvider)),
		grpc.StatsHandler(calls),
		grpc.ChainStreamInterceptor(guard.stream),
		grpc.ChainUnaryInterceptor(guard.unary),
	)
	s.grpc.RegisterService(guard.wrap(&jobpolicyv1grpc.PolicyService_ServiceDesc),
		&service{judge: cfg.Judge, version: cfg.Version})
	healthv1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	calls.know(s.grpc.GetServiceInfo())
	s.health.SetServingStatus(ServiceName, healthv1.HealthCheckResponse_SERVING)
	return s, nil
}

// tracing makes a span of every call of the policy service. Probes and
// reflection would drown them.
func tracing(p trace.TracerProvider) stats.Handler {
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(p),
		otelgrpc.WithPropagators(telemetry.Propagator()),
		otelgrpc.WithFilter(filters.ServiceName(ServiceName)),
	)
}

// Serve accepts connections until Shutdown, and then returns nil.
func (s *Server) Serve(lis net.Listener) error {
	if err := s.grpc.Serve(lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve gRPC: %w", err)
	}
	return nil
}

// Drain tells every health watcher that no more calls are wanted. Calls are
// still answered.
func (s *Server) Drain() { s.health.Shutdown() }

// Shutdown drains, takes no new calls, and waits for those in progress, but no
// longer than timeout; then it cuts them off and reports false.
func (s *Server) Shutdown(timeout time.Duration) bool {
	s.Drain()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
	}()
	select {
	case <-done:
		return true
	case <-time.After(timeout):
		s.grpc.Stop()
		<-done
		return false
	}
}
