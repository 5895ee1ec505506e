package testenv

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// A Log keeps what is logged to it.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// Logger returns a logger of all levels whose lines the Log keeps.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// String returns all lines.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Count returns how many lines contain the text.
func (l *Log) Count(text string) int {
	n := 0
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
