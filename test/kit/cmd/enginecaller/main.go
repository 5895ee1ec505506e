// Command enginecaller calls the engine from a pod, as another controller would: with its own certificate and its own
// trace. It asks about one Job and prints what kind of answer it gets. The OTEL_* variables say where its trace goes.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

// flushTimeout bounds how long the trace is sent after the call.
const flushTimeout = 20 * time.Second

type options struct {
	engine  string
	tlsDir  string
	request string
	timeout time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.engine, "engine", "", "gRPC `target` of the engine")
	flag.StringVar(&o.tlsDir, "tls-dir", "/tls", "directory of ca.crt and, for a caller with a certificate, tls.crt and tls.key")
	flag.StringVar(&o.request, "request", "", "the DecideJobRequest, as protobuf `JSON`")
	flag.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to try to reach the engine")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "enginecaller:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	var request jobpolicyv1.DecideJobRequest
	if err := protojson.Unmarshal([]byte(o.request), &request); err != nil {
		return fmt.Errorf("--request: %w", err)
	}
	config, err := tlsConfig(o.tlsDir)
	if err != nil {
		return err
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return fmt.Errorf("trace exporter: %w", err)
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	defer func() {
		bounded, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		err = errors.Join(err, traces.Shutdown(bounded))
	}()
	decision, err := ask(ctx, o, config, traces, &request)
	if err != nil {
		return err
	}
	fmt.Println(decision.GetDisposition())
	return nil
}

// ask calls the engine within a span of its own.
func ask(ctx context.Context, o options, config *tls.Config, traces *sdktrace.TracerProvider, request *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	conn, err := grpc.NewClient(o.engine,
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithTracerProvider(traces), otelgrpc.WithPropagators(propagation.TraceContext{}))))
	if err != nil {
		return nil, fmt.Errorf("--engine %s: %w", o.engine, err)
	}
	defer conn.Close()
	ctx, span := traces.Tracer("jobpolicy.dev/test/kit/cmd/enginecaller").Start(ctx, "engine.called")
	defer span.End()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	decision, err := jobpolicyv1grpc.NewPolicyServiceClient(conn).DecideJob(ctx, request, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("DecideJob: %w", err)
	}
	return decision, nil
}

// tlsConfig reads what the Secret of a client holds. Without tls.crt the caller shows no certificate.
func tlsConfig(dir string) (*tls.Config, error) {
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s: want certificates in PEM", filepath.Join(dir, "ca.crt"))
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if errors.Is(err, fs.ErrNotExist) {
		return config, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tls.crt and tls.key in %s: %w", dir, err)
	}
	// Shown whatever authorities the server names: it is for the server to refuse it.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return config, nil
}
