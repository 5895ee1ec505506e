// Package logging bounds what strangers, and servers that are away, can cause: how many log lines,
// and how long the texts in errors, spans and log lines.
package logging

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Bounded is BoundedEvery with 10 s.
func Bounded(log *slog.Logger) *slog.Logger { return BoundedEvery(10*time.Second, log) }

// BoundedEvery returns a logger that writes the first line at once, and then at most one line in
// the period. The attribute notLogged says how many lines were left out before.
func BoundedEvery(period time.Duration, log *slog.Logger) *slog.Logger {
	return slog.New(limited{log.Handler(), &limit{sometimes: rate.Sometimes{Interval: period}}})
}

type limited struct {
	slog.Handler
	limit *limit
}

type limit struct {
	sometimes rate.Sometimes
	lines     atomic.Int64 // since the last one that was written
}

// Handle implements slog.Handler.
func (h limited) Handle(ctx context.Context, r slog.Record) error {
	h.limit.lines.Add(1)
	write := false
	h.limit.sometimes.Do(func() { write = true }) // Others wait for it, so it does nothing else.
	if !write {
		return nil
	}
	r = r.Clone()
	r.AddAttrs(slog.Int64("notLogged", h.limit.lines.Swap(0)-1))
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
