package world

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
)

// A logHandler reads what an executor logs. The executor must never report a missed
// reconcile, and must report a second controller where one works.
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
	if r.Message == executor.LogMissedReconcile {
		h.w.broken("missed reconcile", h.by+" "+attributes(r))
	}
	if r.Message == executor.LogSecondController {
		h.w.judge.says(h.by, types.UID(attribute(r, "uid")), time.Now())
	}
	if h.w.telling() && r.Level >= slog.LevelInfo {
		h.w.note(h.by, "logs: "+r.Message+" "+attributes(r))
	}
	return nil
}

func attribute(r slog.Record, key string) (value string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == key {
			value = a.Value.String()
		}
		return value == ""
	})
	return value
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
