// Package testengine runs a policy server on a real socket for a test.
package testengine

import (
	"cmp"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/decider"
	"jobpolicy.dev/services/internal/policyserver"
	"jobpolicy.dev/services/internal/testenv"
)

// Config configures an Engine. Every field has a default.
type Config struct {
	// Address to listen on. Default: any free port.
	Address string
	// Decide and DecideCron replace the engine.
	Decide         func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	DecideCron     func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
	Credentials    credentials.TransportCredentials
	TracerProvider trace.TracerProvider
	// MaxConcurrentCalls is 8 if it is 0.
	MaxConcurrentCalls int
	// MaxConnectionsPerCaller and MaxConnections are 100 and 1,000 if they are 0.
	MaxConnectionsPerCaller, MaxConnections int
	// ReceiveTimeout and SendTimeout are a minute if they are 0.
	ReceiveTimeout, SendTimeout time.Duration
	// AuthorizedCallers is the file with the list of authorized callers.
	AuthorizedCallers string
}

// Engine is a policy server on a real socket, stopped at the end of the test.
type Engine struct {
	*policyserver.Server
	Address  string
	Registry *prometheus.Registry
	Log      *testenv.Log
}

// Start starts an Engine.
func Start(t testing.TB, cfg Config) *Engine {
	t.Helper()
	spans := policyserver.LimitSpans(cmp.Or[trace.TracerProvider](cfg.TracerProvider, noop.NewTracerProvider()))
	e := &Engine{Registry: prometheus.NewRegistry(), Log: &testenv.Log{}}
	decider, err := decider.NewEmbedded(decider.EmbeddedConfig{
		TracerProvider: spans, Registerer: e.Registry, Logger: e.Log.Logger(), Decide: cfg.Decide, DecideCron: cfg.DecideCron,
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Server, err = policyserver.New(policyserver.Config{
		Engine:                  decider,
		Credentials:             cmp.Or(cfg.Credentials, insecure.NewCredentials()),
		TracerProvider:          spans,
		Registerer:              e.Registry,
		Logger:                  e.Log.Logger(),
		Version:                 "v0-test",
		MaxConcurrentCalls:      cmp.Or(cfg.MaxConcurrentCalls, 8),
		MaxOpenCalls:            1000,
		MaxConnectionsPerCaller: cmp.Or(cfg.MaxConnectionsPerCaller, 100),
		MaxConnections:          cmp.Or(cfg.MaxConnections, 1000),
		MaxConnectionAge:        time.Hour,
		MemoryLimit:             512 << 20,
		AuthorizedCallers:       cfg.AuthorizedCallers,
		ReceiveTimeout:          cmp.Or(cfg.ReceiveTimeout, time.Minute),
		SendTimeout:             cmp.Or(cfg.SendTimeout, time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", cmp.Or(cfg.Address, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	e.Address = lis.Addr().String()
	go func() { _ = e.Serve(lis) }()
	t.Cleanup(func() { e.Shutdown(0) })
	return e
}

// Dial returns a plaintext connection, closed at the end of the test. It allows larger
// messages than the server does.
func (e *Engine) Dial(t testing.TB, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	const anySize = 64 << 20
	opts = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(anySize), grpc.MaxCallSendMsgSize(anySize)),
	}, opts...)
	conn, err := grpc.NewClient(e.Address, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
