package policyserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"jobpolicy.dev/proto/conformance"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/decider"
	"jobpolicy.dev/services/internal/logging"
	"jobpolicy.dev/services/internal/probes"
	"jobpolicy.dev/services/internal/refusal"
)

// Transport settings that nobody needs to change.
const (
	// A client may ping this often, even without an open call.
	minClientPing = 10 * time.Second
	// The server pings a silent client to learn whether it is still there.
	pingAfter   = time.Minute
	pingTimeout = 20 * time.Second
	// After its age is reached, a connection's calls get this long to end.
	connectionAgeGrace = time.Minute
	// How many bytes a client may send before they are read: of one call, and of all
	// calls of a connection. Fixed windows avoid gRPC's bandwidth probes.
	streamWindow     = 64 << 10
	connectionWindow = 4 << 20
	// A connection whose handshake takes longer is closed.
	handshakeTimeout = 10 * time.Second
	// Names and metadata of a call, in bytes.
	maxHeaderBytes = 16 << 10
	// Read and write buffers of a connection.
	connectionBuffer = 16 << 10
)

// Received requests, decoded requests and answers may take an eighth, a third and an eighth
// of the memory limit. The rest is for connections, for deciding, and for garbage that Go
// has not yet collected.
const (
	receivedPart = 8
	decodedPart  = 3
	answersPart  = 8
)

// MinMemoryLimit is the least Config.MemoryLimit: one caller's share of the
// memory for requests, a sixteenth, must hold the largest message.
const MinMemoryLimit = 2 * receivedPart * jobpolicyv1grpc.MaxMessageBytes

// ServiceName is the service whose health is reported, besides that of the empty name.
var ServiceName = jobpolicyv1grpc.PolicyService_ServiceDesc.ServiceName

// Config configures a Server. Every field but AuthorizedCallers is required.
type Config struct {
	Engine      *decider.Embedded
	Credentials credentials.TransportCredentials
	// TracerProvider is made by LimitSpans, as that of Engine.
	TracerProvider trace.TracerProvider
	Registerer     prometheus.Registerer
	Logger         *slog.Logger
	// Version is what GetServerInfo and the headers of each answer report.
	Version string
	// MaxConcurrentCalls is how many calls are decoded and decided on at a time;
	// fewer if they are large. One caller gets half of them. 1 or more.
	MaxConcurrentCalls int
	// MaxOpenCalls is how many calls may be open, waiting ones included. One caller
	// gets half of them.
	MaxOpenCalls int
	// MaxConnectionsPerCaller is how many connections one caller may have, and
	// MaxConnections how many all of them together may have.
	MaxConnectionsPerCaller, MaxConnections int
	// MemoryLimit is what the process may take, in bytes; at least MinMemoryLimit.
	MemoryLimit int64
	// ReceiveTimeout is how long a request may take to arrive; then its call ends.
	// SendTimeout is how long it may take to write an answer; then the connection is
	// closed.
	ReceiveTimeout, SendTimeout time.Duration
	// AuthorizedCallers is a file that says who may call what: see AllowList. Empty:
	// everybody who may connect may call everything.
	AuthorizedCallers string
	// MaxConnectionAge is the age at which a client is asked to connect anew, so that
	// clients spread over new replicas. gRPC varies it by up to a tenth for each
	// connection.
	MaxConnectionAge time.Duration
}

// maxStreams is how many calls one connection may have open.
const maxStreams = 250

// A Server serves the policy engine.
type Server struct {
	grpc       *grpc.Server
	health     *health.Server
	handshakes *handshakes
	callers    probes.Check
}

// New returns a Server that does not listen yet. It fails when its metrics are
// already registered, or the list of authorized callers cannot be used.
func New(cfg Config) (*Server, error) {
	calls, err := newCallMetrics(cfg.Registerer, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("register the server's metrics: %w", err)
	}
	authorizer, err := newAuthorizer(cfg.AuthorizedCallers, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("--authorized-callers-file: %w", err)
	}
	p := newPools(cfg)
	if err := errors.Join(registerHeld(cfg.Registerer, p), authorizer.register(cfg.Registerer)); err != nil {
		return nil, fmt.Errorf("register the server's metrics: %w", err)
	}
	build := jobpolicyv1grpc.Build{Version: cfg.Version, RulesDigest: conformance.Digest()}
	guard := &guard{build: build.Header(), log: cfg.Logger, metrics: calls, sendTimeout: cfg.SendTimeout}
	admission := &admission{authorizer: authorizer, receiveTimeout: cfg.ReceiveTimeout}
	gate := newGate(cfg.Credentials, newCallers(p, cfg.MaxConnectionsPerCaller, cfg.MaxConnections), authorizer, calls)
	s := &Server{health: health.NewServer(), handshakes: gate.handshakes, callers: authorizer.check()}
	s.grpc = grpc.NewServer(append(transportOptions(cfg),
		grpc.Creds(gate),
		grpc.InTapHandle(admission.admit),
		grpc.StatsHandler(tracing(cfg.TracerProvider)),
		grpc.StatsHandler(calls),
		grpc.ChainStreamInterceptor(guard.stream),
		grpc.ChainUnaryInterceptor(guard.unary),
		grpc.UnknownServiceHandler(unknownMethod),
	)...)
	s.grpc.RegisterService(guard.wrap(&jobpolicyv1grpc.PolicyService_ServiceDesc),
		&service{engine: cfg.Engine, build: build})
	s.grpc.RegisterService(refusing(&healthv1.Health_ServiceDesc), s.health)
	reflection.Register(s.grpc)
	calls.know(s.grpc.GetServiceInfo())
	s.health.SetServingStatus(ServiceName, healthv1.HealthCheckResponse_SERVING)
	return s, nil
}

// AuthorizedCallers says whether the list of authorized callers can be used. The check
// never fails: if the list cannot be used, the previous one stays in use.
func (s *Server) AuthorizedCallers() probes.Check { return s.callers }

func transportOptions(cfg Config) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		// Of other services: receive reads the requests of the policy service itself.
		grpc.MaxRecvMsgSize(receiveChunk),
		grpc.MaxSendMsgSize(jobpolicyv1grpc.MaxMessageBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.ReadBufferSize(connectionBuffer),
		grpc.WriteBufferSize(connectionBuffer),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minClientPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge:      cfg.MaxConnectionAge,
			MaxConnectionAgeGrace: connectionAgeGrace,
			Time:                  pingAfter,
			Timeout:               pingTimeout,
		}),
	}
}

func newPools(cfg Config) *pools {
	return &pools{
		calls:         newPool(int64(cfg.MaxOpenCalls)),
		received:      newPool(cfg.MemoryLimit / receivedPart),
		decoded:       newPool(cfg.MemoryLimit / decodedPart),
		answers:       newPool(cfg.MemoryLimit / answersPart),
		processors:    newPool(int64(cfg.MaxConcurrentCalls)),
		largeRequests: newPool(max(1, int64(runtime.GOMAXPROCS(0))/2)),
	}
}

// unknownMethod answers calls of methods that are not served.
func unknownMethod(_ any, stream grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(stream)
	name = logging.Text(name, maxShownBytes)
	if strings.HasPrefix(name, "/jobpolicy.") && !strings.HasPrefix(name, "/"+contractVersion+".") {
		return refusal.Refusal{
			Code: codes.Unimplemented, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_UNKNOWN_VERSION,
			Text:     fmt.Sprintf("%s is of a version of the contract that is not served, %s is", name, contractVersion),
			Metadata: map[string]string{"contract_versions": contractVersion},
		}.Err()
	}
	return refusal.Refusal{
		Code: codes.Unimplemented, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_UNKNOWN_METHOD,
		Text: fmt.Sprintf("unknown method %s", name), Metadata: map[string]string{"method": name},
	}.Err()
}

// Serve accepts connections until Shutdown, and then returns nil.
func (s *Server) Serve(lis net.Listener) error {
	if err := s.grpc.Serve(rateLimited(lis)); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
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
	s.handshakes.end()
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
