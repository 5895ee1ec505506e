package decisionlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"gopkg.in/natefinch/lumberjack.v2"

	"jobpolicy.dev/services/internal/servicemain"
	"jobpolicy.dev/services/internal/telemetry"
)

// Destinations that are not files.
const (
	toStdout    = "-"
	toCollector = "otlp"
)

// Formats of a log.
const (
	formatJSON   = "json"
	formatBinary = "protobuf"
)

// Options are the flags of a decision log.
type Options struct {
	// To is a file, - or otlp. Empty: there is no log.
	To     string
	Format string
	// Sample is the share of objects that are logged, 0 to 1.
	Sample float64
	Redact bool
	// MaxSize is in MiB, of one file. MaxFiles is how many older ones are kept.
	MaxSize, MaxFiles int
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.To, "decision-log", "", "Write every decision with its request, and what became of it, to this `file`; - is standard output, and otlp the OpenTelemetry collector that the OTEL_* variables name. Empty: there is no log.")
	fs.StringVar(&o.Format, "decision-log-format", formatJSON, "How a record is written to a file or standard output: json (a line each) or protobuf (each with its length before it).")
	fs.Float64Var(&o.Sample, "decision-log-sample", 1, "The share of Jobs and CronJobs that are logged, above 0 up to 1. An object is logged whole or not at all.")
	fs.BoolVar(&o.Redact, "decision-log-redact", false, "Replace names and messages by hashes. The same name has the same hash until the process ends.")
	fs.IntVar(&o.MaxSize, "decision-log-max-size", 100, "The size in MiB at which a file is renamed and another one begun.")
	fs.IntVar(&o.MaxFiles, "decision-log-max-files", 5, "How many older files are kept. 0: all.")
}

// Validate returns an error for each flag that cannot be used.
func (o *Options) Validate() error {
	var errs servicemain.Problems
	errs.Require(o.Format == formatJSON || o.Format == formatBinary, "--decision-log-format must be json or protobuf, is %q", o.Format)
	errs.Require(o.Sample > 0 && o.Sample <= 1, "--decision-log-sample must be above 0 and at most 1, is %v", o.Sample)
	errs.Require(o.MaxSize >= 1, "--decision-log-max-size must be at least 1, is %d", o.MaxSize)
	errs.Require(o.MaxFiles >= 0, "--decision-log-max-files must be at least 0, is %d", o.MaxFiles)
	return errors.Join(errs...)
}

// Start opens the log. It returns nil if there is none.
func (o *Options) Start(ctx context.Context, service telemetry.Service, registerer prometheus.Registerer, logger *slog.Logger) (*Log, error) {
	if o.To == "" {
		return nil, nil
	}
	log, err := newLog(o, registerer, logger)
	if err != nil {
		return nil, err
	}
	to, err := o.open(ctx, service, log.counted, logger)
	if err != nil {
		return nil, fmt.Errorf("--decision-log: %w", err)
	}
	log.start(to)
	return log, nil
}

func (o *Options) open(ctx context.Context, service telemetry.Service, count counter, logger *slog.Logger) (sink, error) {
	switch o.To {
	case toStdout:
		return &fileSink{w: os.Stdout, encode: encoders[o.Format], count: count}, nil
	case toCollector:
		return newCollectorSink(ctx, service, count, logger)
	}
	// The file is opened for the first record. This shows errors at the start.
	if err := writable(o.To); err != nil {
		return nil, err
	}
	goesOn, err := canGoOn(o.To, o.Format)
	if err != nil {
		return nil, err
	}
	file := &lumberjack.Logger{Filename: o.To, MaxSize: o.MaxSize, MaxBackups: o.MaxFiles}
	return &fileSink{w: file, encode: encoders[o.Format], file: file, cut: !goesOn, count: count}, nil
}

// writable makes the file if there is none.
func writable(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}
