package probes

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of WatchConfig.
const (
	defaultPeriod       = 10 * time.Second
	defaultStallTimeout = 5 * time.Minute
	defaultEnd          = time.Minute
)

// A QueueLoad is what a work queue has to do, and how much it has done.
type QueueLoad struct {
	Name string
	// Due is how many items are due or in progress.
	Due int
	// Done counts the times that an item was worked on.
	Done uint64
}

// WatchConfig configures a Watch. Queues, Ready, QueueLabel and Logger are required.
type WatchConfig struct {
	// Queues returns the loads of the work queues.
	Queues func() []QueueLoad
	// Ready is nil once the queues are worked on.
	Ready func() error
	// QueueLabel is the label of goroutines that names the queue for which they reconcile
	// (runtime/pprof).
	QueueLabel string
	// Holds is nil while this replica is certain to hold its lease. Default: there is no
	// lease.
	Holds  func() error
	Logger *slog.Logger

	// Period is the time between two checks. Default 10 s.
	Period time.Duration
	// StallTimeout is how long a queue may make no progress before /healthz fails. Default
	// 5 min, which is longer than any call takes.
	StallTimeout time.Duration
	// End is how long a replica may take to end after it has lost its lease. Default 1 min.
	End time.Duration
}

// A Watch notices a leading executor that has stalled, so that the kubelet restarts it: a queue makes
// no progress, or the process does not end although it has lost its lease. Both would be defects.
// Nothing else makes a process unhealthy, because a restart would not bring back an engine or an API
// server.
//
// It checks the process once in each period. It measures time by counting checks, not
// by a clock, so the time in which the process was frozen does not count.
type Watch struct {
	cfg      WatchConfig
	requests requestCounts
	stage    atomic.Int32 // one of the stages below

	mu      sync.Mutex
	before  map[string]queueState
	stalled map[string]int // checks in a row in which a queue made no progress, by its name
	lost    int            // checks in a row in which the lease was lost
	problem error
}

// The stages of a replica, in their order.
const (
	waiting int32 = iota
	leading
	over // it was asked to end, or has ended
)

// NewWatch returns a Watch that sees nothing wrong before Run.
func NewWatch(cfg WatchConfig) *Watch {
	if cfg.Period == 0 {
		cfg.Period = defaultPeriod
	}
	if cfg.StallTimeout == 0 {
		cfg.StallTimeout = defaultStallTimeout
	}
	if cfg.End == 0 {
		cfg.End = defaultEnd
	}
	return &Watch{cfg: cfg, requests: requestCounts{by: map[string]requests{}}, stalled: map[string]int{}}
}

// Lead returns a function that runs the work of a leader. While it runs, the queues must
// make progress.
func (w *Watch) Lead(work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		w.stage.Store(leading)
		defer w.stage.Store(over)
		// Work that was asked to end starts nothing new, so the queues may make no progress.
		defer context.AfterFunc(ctx, func() { w.stage.Store(over) })()
		return work(ctx)
	}
}

// Run checks the process until the context is done.
func (w *Watch) Run(ctx context.Context) {
	ticker := time.NewTicker(w.cfg.Period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look()
		}
	}
}

// Check fails when the process should be restarted.
func (w *Watch) Check() Check {
	return Check{Name: "progress", Run: func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.problem
	}}
}

// look checks the process once. The problem ends when the queue makes progress, or the
// lease is held, again.
func (w *Watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	problem := w.lease()
	if problem == nil {
		problem = w.queues()
	}
	if problem != nil && w.problem == nil {
		w.cfg.Logger.Error("process stalled, /healthz fails from now on", "error", problem, "goroutines", goroutines())
	}
	w.problem = problem
}

func (w *Watch) lease() error {
	if w.cfg.Holds == nil || w.stage.Load() == waiting {
		return nil
	}
	err := w.cfg.Holds()
	if err == nil {
		w.lost = 0
		return nil
	}
	if w.lost++; time.Duration(w.lost)*w.cfg.Period < w.cfg.End {
		return nil
	}
	return fmt.Errorf("the process has not ended within %s after it lost the lease: %w", w.cfg.End, err)
}

func (w *Watch) queues() error {
	now, before := w.sample(), w.before
	w.before = now
	if w.stage.Load() != leading || w.cfg.Ready() != nil {
		clear(w.stalled)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		is, was := now[name], before[name]
		if is.Due == 0 || was.Due == 0 || is.Done != was.Done || is.writes != was.writes || is.pending > 0 {
			w.stalled[name] = 0
			continue
		}
		if w.stalled[name]++; time.Duration(w.stalled[name])*w.cfg.Period >= w.cfg.StallTimeout {
			return fmt.Errorf("queue %s is stalled: work is due, and for %s none of it was done and nothing was written for it", name, w.cfg.StallTimeout)
		}
	}
	return nil
}

// goroutines returns the stacks of all goroutines.
func goroutines() string {
	var out bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&out, 1) // A buffer returns no error.
	return out.String()
}

// A queueState is the state of a work queue at one time, with the requests that were made for it.
type queueState struct {
	QueueLoad
	requests
}

// sample returns the state of all queues, by name.
func (w *Watch) sample() map[string]queueState {
	queues := map[string]queueState{}
	for _, load := range w.cfg.Queues() {
		queues[load.Name] = queueState{load, w.requests.of(load.Name)}
	}
	return queues
}
