// Package logging makes the loggers of the services. It bounds what strangers, and servers that are
// away, can cause: how many log lines, and how long the texts in errors, spans and log lines.
package logging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"
)

// Log formats.
const (
	formatText = "text"
	formatJSON = "json"
)

// Options says how to log.
type Options struct {
	// Format is text or json.
	Format string
	// Level is debug, info, warn or error.
	Level string
}

// AddFlags defines the flags, with their defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Format, "log-format", formatText, "Format of log lines on standard error: text or json.")
	fs.StringVar(&o.Level, "log-level", "info", "Least level that is logged: debug, info, warn or error.")
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// Validate checks the values. Errors name flags.
func (o *Options) Validate() error {
	var format, level error
	if o.Format != formatText && o.Format != formatJSON {
		format = fmt.Errorf("--log-format must be text or json, is %q", o.Format)
	}
	if _, ok := levels[o.Level]; !ok {
		level = fmt.Errorf("--log-level must be debug, info, warn or error, is %q", o.Level)
	}
	return errors.Join(format, level)
}

// Logger returns a logger that writes to w. Lines logged with a context carry
// the ids of its trace and span. The options must be valid.
func (o *Options) Logger(w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: levels[o.Level]}
	if o.Format == formatJSON {
		return slog.New(traced{slog.NewJSONHandler(w, opts)})
	}
	return slog.New(traced{slog.NewTextHandler(w, opts)})
}

// traced is a slog.Handler that adds trace_id and span_id to every record whose
// context has a span.
type traced struct{ slog.Handler }

// Handle implements slog.Handler.
func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }
