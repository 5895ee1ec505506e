package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"jobpolicy.dev/services/internal/logging"
)

// Environment variables that this package reads. The SDK and the exporters read the
// other variables of the OpenTelemetry specification (sampler, batching, headers,
// certificates, timeouts, resource attributes).
const (
	envSDKDisabled    = "OTEL_SDK_DISABLED"
	envTracesExporter = "OTEL_TRACES_EXPORTER"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// Exporters that OTEL_TRACES_EXPORTER may name.
const (
	exporterNone    = "none"
	exporterOTLP    = "otlp"
	exporterConsole = "console"
)

// Protocols that OTEL_EXPORTER_OTLP_PROTOCOL may name.
const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"
)

// A Service is the service name and version in the resource of every span.
// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it.
type Service struct {
	Name    string
	Version string
}

// Tracing is a process's tracing.
type Tracing struct {
	// Provider is never nil; it records nothing when no exporter is configured.
	Provider trace.TracerProvider
	shutdown func(context.Context) error
}

// StartTracing sets up tracing from the OTEL_* variables. Tracing is off if they name
// neither an endpoint nor an exporter. If an exporter cannot reach its collector, that is
// logged and the program goes on.
func StartTracing(ctx context.Context, s Service, log *slog.Logger) (*Tracing, error) {
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, err
	}
	if exporter == nil {
		return &Tracing{Provider: noop.NewTracerProvider(), shutdown: func(context.Context) error { return nil }}, nil
	}
	res, err := newResource(ctx, s)
	if err != nil {
		return nil, errors.Join(err, exporter.Shutdown(ctx))
	}
	reportErrors(log)
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(cleaning{exporter}), sdktrace.WithResource(res), sdktrace.WithRawSpanLimits(spanLimits()))
	return &Tracing{Provider: provider, shutdown: provider.Shutdown}, nil
}

// SetGlobal makes the libraries in this process use the provider. Between processes they
// use W3C trace context and baggage.
func (t *Tracing) SetGlobal() {
	otel.SetTracerProvider(t.Provider)
	otel.SetTextMapPropagator(Propagator())
}

// Propagator carries W3C trace context and baggage.
func Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
}

// Shutdown sends the remaining spans, until the context ends.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if err := t.shutdown(ctx); err != nil {
		return fmt.Errorf("flush traces: %w", err)
	}
	return nil
}

// newExporter returns nil when tracing is off.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if os.Getenv(envSDKDisabled) == "true" {
		return nil, nil
	}
	switch name := exporterName(); name {
	case exporterNone:
		return nil, nil
	case exporterConsole:
		// Standard output may hold the decision log.
		return stdouttrace.New(stdouttrace.WithWriter(os.Stderr))
	case exporterOTLP:
		return newOTLPExporter(ctx)
	default:
		return nil, fmt.Errorf("%s=%q is not one of %s, %s, %s", envTracesExporter, name, exporterOTLP, exporterConsole, exporterNone)
	}
}

// exporterName departs from the specification: by default there is no exporter. The
// specification's default is otlp to localhost, where there may be no collector.
func exporterName() string {
	if name := os.Getenv(envTracesExporter); name != "" {
		return name
	}
	if os.Getenv(envEndpoint) != "" || os.Getenv(envTracesEndpoint) != "" {
		return exporterOTLP
	}
	return exporterNone
}

func newOTLPExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	switch protocol := protocolOf(envTracesProtocol); protocol {
	case protocolGRPC:
		return otlptracegrpc.New(ctx)
	case protocolHTTP:
		return otlptracehttp.New(ctx)
	default:
		return nil, fmt.Errorf("%s=%q is not one of %s, %s", envProtocol, protocol, protocolGRPC, protocolHTTP)
	}
}

// protocolOf is the protocol of a signal, which has a variable of its own.
func protocolOf(signal string) string {
	for _, env := range []string{signal, envProtocol} {
		if protocol := os.Getenv(env); protocol != "" {
			return protocol
		}
	}
	return protocolHTTP
}

// maxAttributeBytes bounds a span's attribute, unless the environment sets a bound.
// Exporters drop a whole batch in which one span is too large.
const maxAttributeBytes = 4096

func spanLimits() sdktrace.SpanLimits {
	limits := sdktrace.NewSpanLimits() // of the environment
	if limits.AttributeValueLengthLimit < 0 {
		limits.AttributeValueLengthLimit = maxAttributeBytes
	}
	return limits
}

// newResource describes this process. The environment overrides what is set here.
func newResource(ctx context.Context, s Service) (*resource.Resource, error) {
	res, err := resource.New(ctx,
		resource.WithSchemaURL(semconv.SchemaURL),
		resource.WithAttributes(semconv.ServiceName(s.Name), semconv.ServiceVersion(s.Version)),
		resource.WithHost(),
		resource.WithProcessPID(),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
	// A detector with another schema version still returns its attributes.
	if err != nil && !errors.Is(err, resource.ErrSchemaURLConflict) && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this process: %w", err)
	}
	return res, nil
}

// errorPeriod is the least time between two logged errors of the SDK.
const errorPeriod = 10 * time.Minute

// reportErrors logs the errors that the SDK cannot return to a caller. If a collector is
// down, one comes every few seconds, often with another text.
func reportErrors(log *slog.Logger) {
	limited := logging.BoundedEvery(errorPeriod, log)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		limited.Warn("telemetry cannot be exported", "error", err)
	}))
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
}
