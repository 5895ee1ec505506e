package servicemain

import (
	"context"
	"errors"
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

// LogOptions says how to log.
type LogOptions struct {
	// Format is text or json.
	Format string
	// Level is debug, info, warn or error.
	Level string
}

// AddFlags defines the flags, with their defaults.
func (o *LogOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Format, "log-format", formatText, "Format of log lines on standard error: text or json.")
	fs.StringVar(&o.Level, "log-level", "info", "Least level that is logged: debug, info, warn or error.")
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// Validate checks the values. Errors name flags.
func (o *LogOptions) Validate() error {
	var errs Problems
	errs.Require(o.Format == formatText || o.Format == formatJSON, "--log-format must be text or json, is %q", o.Format)
	_, ok := levels[o.Level]
	errs.Require(ok, "--log-level must be debug, info, warn or error, is %q", o.Level)
	return errors.Join(errs...)
}

// Logger returns a logger that writes to w. Lines logged with a context carry
// the ids of its trace and span. The options must be valid.
func (o *LogOptions) Logger(w io.Writer) *slog.Logger {
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
