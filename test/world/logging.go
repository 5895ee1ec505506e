package world

import (
	"context"
	"log/slog"
	"strings"

	"jobpolicy.dev/executor/telemetry"
)

// A logHandler reads what an executor logs. The executor must never report a missed
// wake.
type logHandler struct {
	w  *world
	by string
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.w.telling()
}

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == telemetry.LogMissedReconcile {
		h.w.broken("missed reconcile", h.by+" "+attributes(r))
	}
	if h.w.telling() && r.Level >= slog.LevelInfo {
		h.w.note(h.by, "logs: "+r.Message+" "+attributes(r))
	}
	return nil
}

func attributes(r slog.Record) string {
	var out []string
	r.Attrs(func(a slog.Attr) bool {
		out = append(out, a.String())
		return true
	})
	return strings.Join(out, " ")
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(string) slog.Handler { return h }
