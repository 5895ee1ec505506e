// Package limitedlog limits how many log lines strangers, and servers that are away, can cause.
package limitedlog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// New is Every with 10 s.
func New(log *slog.Logger) *slog.Logger { return Every(10*time.Second, log) }

// Every returns a logger that writes the first line at once, and then at most one line in
// the period. The attribute notLogged says how many lines were left out before.
func Every(period time.Duration, log *slog.Logger) *slog.Logger {
	return slog.New(limited{log.Handler(), &limit{period: period}})
}

type limited struct {
	slog.Handler
	limit *limit
}

type limit struct {
	period  time.Duration
	mu      sync.Mutex
	written time.Time
	leftOut int
}

// Handle implements slog.Handler.
func (h limited) Handle(ctx context.Context, r slog.Record) error {
	leftOut, write := h.limit.take(time.Now())
	if !write {
		return nil
	}
	r = r.Clone()
	r.AddAttrs(slog.Int("notLogged", leftOut))
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limited{h.Handler.WithAttrs(attrs), h.limit}
}

// WithGroup implements slog.Handler.
func (h limited) WithGroup(name string) slog.Handler {
	return limited{h.Handler.WithGroup(name), h.limit}
}

// take reports whether a line may be written now, and how many were left out before it.
func (l *limit) take(now time.Time) (leftOut int, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.written.IsZero() && now.Sub(l.written) < l.period {
		l.leftOut++
		return 0, false
	}
	leftOut, l.leftOut, l.written = l.leftOut, 0, now
	return leftOut, true
}
