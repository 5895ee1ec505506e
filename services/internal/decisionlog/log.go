package decisionlog

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// queueLength is how many records may wait to be written.
const queueLength = 4096

// A sink is where a log goes. It counts what became of each record.
type sink interface {
	write(ctx context.Context, record *jobpolicyv1.DecisionRecord) error
	close(ctx context.Context) error
}

// A counter counts records that were written, or that are lost if there is an error.
type counter func(records int, err error)

// Log is a decision log. It implements controller.DecisionLog.
type Log struct {
	sink   sink
	share  uint64 // Objects whose hash is at most this are logged.
	redact *redactor
	logger *slog.Logger
	count  *prometheus.CounterVec

	// mu keeps Record from sending on the closed queue.
	mu     sync.RWMutex
	closed bool
	queue  chan entry
	ended  chan struct{}
	// open is how many records are recorded of which it is not known what became.
	open atomic.Int64
}

type entry struct {
	ctx    context.Context
	record *jobpolicyv1.DecisionRecord
}

// Results by which records are counted.
const (
	resultWritten = "written"
	resultDropped = "dropped"
	resultFailed  = "failed"
)

// newLog returns a Log that keeps records until it is started.
func newLog(o *Options, registerer prometheus.Registerer, logger *slog.Logger) (*Log, error) {
	l := &Log{
		share: uint64(o.Sample * math.MaxUint32), logger: logger,
		queue: make(chan entry, queueLength), ended: make(chan struct{}),
		count: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobpolicy_decision_log_records_total",
			Help: "Records of the decision log: written, dropped because too many waited, or failed to be written.",
		}, []string{"result"}),
	}
	for _, result := range []string{resultWritten, resultDropped, resultFailed} {
		l.count.WithLabelValues(result)
	}
	if err := registerer.Register(l.count); err != nil {
		return nil, fmt.Errorf("metrics of the decision log: %w", err)
	}
	if o.Redact {
		l.redact = newRedactor()
	}
	return l, nil
}

// start writes the records to the sink.
func (l *Log) start(to sink) {
	l.sink = to
	go l.run()
}

func (l *Log) counted(records int, err error) {
	result := resultWritten
	if err != nil {
		result = resultFailed
	}
	l.count.WithLabelValues(result).Add(float64(records))
	l.open.Add(-int64(records))
}

// Record implements controller.DecisionLog.
func (l *Log) Record(ctx context.Context, record *jobpolicyv1.DecisionRecord) {
	if hash(record) > l.share {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		l.count.WithLabelValues(resultDropped).Inc()
		return
	}
	l.open.Add(1)
	select {
	case l.queue <- entry{context.WithoutCancel(ctx), record}:
	default:
		l.open.Add(-1)
		l.count.WithLabelValues(resultDropped).Inc()
	}
}

// hash depends only on the object's UID, so that all of its records are logged or none.
func hash(record *jobpolicyv1.DecisionRecord) uint64 {
	uid := record.GetJob().GetRequest().GetJob().GetUid()
	if cron := record.GetCronJob(); cron != nil {
		uid = cron.GetRequest().GetCronJob().GetUid()
	}
	h := fnv.New32a()
	_, _ = h.Write(uid) // It never fails.
	return uint64(h.Sum32())
}

func (l *Log) run() {
	defer close(l.ended)
	healthy := true
	for e := range l.queue {
		if l.redact != nil {
			e.record = l.redact.record(e.record)
		}
		err := l.sink.write(e.ctx, e.record)
		if err != nil && healthy { // Failures in a row are logged once.
			l.logger.ErrorContext(e.ctx, "decision log cannot be written", slog.Any("error", err))
		}
		healthy = err == nil
	}
}

// Close writes the waiting records, until ctx ends. Records that come later are dropped. The
// error says how many were not written by then.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.mu.Unlock()
	var late error
	select {
	case <-l.ended:
	case <-ctx.Done():
		late = ctx.Err()
	}
	err := errors.Join(late, l.sink.close(ctx))
	if lost := l.open.Load(); lost > 0 && err != nil {
		return fmt.Errorf("decision log: %d records are lost: %w", lost, err)
	}
	return err
}
