package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	otellog "go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
)

const (
	envLogsEndpoint = "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"
	envLogsProtocol = "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL"
)

// ErrNoLogsEndpoint says that the environment names no receiver of log records.
var ErrNoLogsEndpoint = fmt.Errorf("expected %s or %s, the address of an OpenTelemetry collector, found neither", envEndpoint, envLogsEndpoint)

// Logs sends log records to an OpenTelemetry collector.
type Logs struct {
	Provider otellog.LoggerProvider
	shutdown func(context.Context) error
}

// MaxWaitingLogs is how many log records may wait to be sent. More would push out the
// oldest, which nobody is told.
const MaxWaitingLogs = 2048

// StartLogs sets up the sending of log records to the endpoint in the OTEL_* variables.
// Without one it returns ErrNoLogsEndpoint. sent is called with the number of records that
// were sent, or with those that are lost and the error.
func StartLogs(ctx context.Context, s Service, sent func(records int, err error), log *slog.Logger) (*Logs, error) {
	if os.Getenv(envEndpoint) == "" && os.Getenv(envLogsEndpoint) == "" {
		return nil, ErrNoLogsEndpoint
	}
	exporter, err := newLogExporter(ctx)
	if err != nil {
		return nil, err
	}
	res, err := newResource(ctx, s)
	if err != nil {
		return nil, errors.Join(err, exporter.Shutdown(ctx))
	}
	reportErrors(log)
	batch := sdklog.NewBatchProcessor(reporting{exporter, sent}, sdklog.WithMaxQueueSize(MaxWaitingLogs))
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(batch), sdklog.WithResource(res))
	return &Logs{Provider: provider, shutdown: provider.Shutdown}, nil
}

// reporting tells what becomes of records.
type reporting struct {
	sdklog.Exporter
	sent func(records int, err error)
}

// Export implements sdklog.Exporter.
func (r reporting) Export(ctx context.Context, records []sdklog.Record) error {
	err := r.Exporter.Export(ctx, records)
	r.sent(len(records), err)
	return err
}

// Shutdown sends the remaining records, until the context ends.
func (l *Logs) Shutdown(ctx context.Context) error {
	if err := l.shutdown(ctx); err != nil {
		return fmt.Errorf("flush log records: %w", err)
	}
	return nil
}

func newLogExporter(ctx context.Context) (sdklog.Exporter, error) {
	switch protocol := protocolOf(envLogsProtocol); protocol {
	case protocolGRPC:
		return otlploggrpc.New(ctx)
	case protocolHTTP:
		return otlploghttp.New(ctx)
	default:
		return nil, fmt.Errorf("%s=%q is not one of %s, %s", envProtocol, protocol, protocolGRPC, protocolHTTP)
	}
}
