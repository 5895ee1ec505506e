package policyserver

import (
	"log/slog"
	"sync"
	"time"
)

// logPeriod is the least time between two lines of one kind.
const logPeriod = 10 * time.Second

// A limitedLog writes few lines, whatever callers do: the first of its kind at
// once, and from then on one in a period, with the number of those left out.
type limitedLog struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*logged
}

type logged struct {
	at      time.Time
	leftOut int
}

func newLimitedLog(log *slog.Logger) *limitedLog {
	return &limitedLog{log: log, kinds: map[string]*logged{}}
}

// warn logs the message, or counts it. There must be few kinds.
func (l *limitedLog) warn(kind, message string, fields ...any) {
	l.mu.Lock()
	k := l.kinds[kind]
	if k == nil {
		k = &logged{}
		l.kinds[kind] = k
	}
	if time.Since(k.at) < logPeriod {
		k.leftOut++
		l.mu.Unlock()
		return
	}
	leftOut := k.leftOut
	k.at, k.leftOut = time.Now(), 0
	l.mu.Unlock()
	l.log.Warn(message, append([]any{"reason", kind, "notLogged", leftOut}, fields...)...)
}
