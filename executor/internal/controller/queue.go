package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/client-go/util/workqueue"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/limit"
)

const (
	// maxImmediate is how many reconciles of a key may follow each other without a pause.
	// It bounds the load that a wrong decision can cause (invariant I11).
	maxImmediate = 10
	// immediatePause is the pause after them, if Options.MinInterval is not longer.
	immediatePause = 200 * time.Millisecond
	// engineAskedAfter is the longest delay of one key after the engine could not be reached: its answer
	// ends the delays of the others. Without it, a quiet queue would not notice for Config.MaxAPIBackoff that
	// the engine is back.
	engineAskedAfter = 2 * time.Second
	// maxRequeueAfter bounds how far ahead a reconcile is planned. The time was
	// computed from a clock that may have been wrong, or may be set meanwhile.
	maxRequeueAfter = 10 * time.Minute
)

// QueueLabel is the profiler label with the name of the queue, as in the queue's metrics. The
// context and the goroutine of each reconcile have it. So a profile can be split by queue, and
// the transport of the client can tell for which queue a request is made.
const QueueLabel = "queue"

// Result says when to reconcile the key again if no event comes before. The zero
// value: only after an event.
type Result struct {
	// Requeue: at once.
	Requeue bool
	// RequeueAfter: after this delay; 0: no time is planned. With an error: after the shorter of
	// this delay and the backoff. So a write that keeps failing does not delay what is due at a
	// certain time.
	RequeueAfter time.Duration
	// Progressed: a write took effect. It matters only with an error: the backoff is then that of a
	// first failure.
	Progressed bool
}

// At is the Result of a decision that asks to be reconciled again at requeue. now is the time by the
// same clock. Without a requeue time the Result is empty. A time that is over becomes one millisecond
// from now, because a requeue is always in the future (invariant I11).
func At(requeue *timestamppb.Timestamp, now time.Time) Result {
	if requeue == nil {
		return Result{}
	}
	return Result{RequeueAfter: max(requeue.AsTime().Sub(now), time.Millisecond)}
}

// Options are what a Queue is made of. Name, Reconcile and Namespace are required.
type Options[K comparable] struct {
	// Name is the label of the queue's metrics.
	Name string
	// Reconcile does what is due for the object of the key. After an error the key
	// backs off.
	Reconcile func(ctx context.Context, key K) (Result, error)
	// Describe names the object of the key in the log.
	Describe func(key K) []slog.Attr
	// Quiet reports whether an error is not logged, because nobody has to act on it. nil: no
	// error is quiet. The errors that Ask logs itself are never logged again.
	Quiet func(error) bool

	// MaxInProgress is how many keys are reconciled at the same time. Default:
	// Config.Workers.
	MaxInProgress int
	// Namespace returns the namespace of a key. Keys take turns by namespace, and no namespace
	// gets all workers.
	Namespace func(key K) string

	// MinInterval is the shortest time between two reconciles of a key. After the first event
	// of a quiet key, it is reconciled at once. Default 0.
	MinInterval time.Duration
	// EventsWait: events do not end the delay of a key that backs off. Without it, an event
	// ends the delay.
	EventsWait bool
	// MaxRequeueAfter bounds Result.RequeueAfter. Default 10 min.
	MaxRequeueAfter time.Duration
	// Low says how keys of low priority give way.
	Low LowPriority
}

// LowPriority says how keys of low priority give way.
type LowPriority struct {
	// Busy reports whether they have to wait. nil: never.
	Busy func() bool
	// Period is how often Busy is asked again, and Max how long they wait at most.
	Period, Max time.Duration
}

// A Queue holds the keys that are due, and reconciles them. It is made by NewQueue
// and runs as part of its Controller.
type Queue[K comparable] struct {
	Options[K]
	c     *Controller
	queue workqueue.TypedDelayingInterface[K]
	slots *limit.Semaphore

	done atomic.Uint64 // How many times a key was worked on.

	mu      sync.Mutex
	entries map[K]*entry // Every key that was enqueued and has not been forgotten.
	// asking is the entry that keeps asking the engine, which could not be reached; nil if the engine can be.
	asking *entry
}

// QueueLoad is what a queue has to do, and how much it has done.
type QueueLoad struct {
	// Name is that of the queue in its metrics.
	Name string
	// Due is how many keys are due or in progress.
	Due int
	// Done counts the times that a key was worked on.
	Done uint64
}

// NewQueue returns a queue of the Controller.
func NewQueue[K comparable](c *Controller, o Options[K]) *Queue[K] {
	if o.MaxInProgress == 0 {
		o.MaxInProgress = c.Workers
	}
	if o.MaxRequeueAfter == 0 {
		o.MaxRequeueAfter = maxRequeueAfter
	}
	q := &Queue[K]{
		Options: o, c: c,
		queue:   clock.NewQueue[K](c.Metrics.QueueName(o.Name), c.Metrics.Queues),
		slots:   limit.NewSemaphore(o.MaxInProgress),
		entries: map[K]*entry{},
	}
	c.queues = append(c.queues, q)
	return q
}

// Enqueue makes a key due because of an event.
func (q *Queue[K]) Enqueue(key K, cause Cause, priority Priority) {
	q.EnqueueAfter(key, cause, priority, 0)
}

// EnqueueAfter makes a key due because of an event, after the delay at the earliest.
func (q *Queue[K]) EnqueueAfter(key K, cause Cause, priority Priority, delay time.Duration) {
	now := time.Now()
	q.mu.Lock()
	e := q.entries[key]
	if e == nil {
		e = &entry{}
		q.entries[key] = e
	}
	e.event(cause, priority, now)
	delay = max(delay, e.wait(now, q.MinInterval, q.EventsWait))
	q.mu.Unlock()
	q.add(key, delay)
}

func (q *Queue[K]) add(key K, delay time.Duration) {
	if delay <= 0 {
		q.queue.Add(key)
		return
	}
	q.queue.AddAfter(key, delay)
}

// Forget drops what is remembered about a key whose object does not exist any more.
func (q *Queue[K]) Forget(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(key)
}

// drop forgets a key. q.mu is held.
func (q *Queue[K]) drop(key K) {
	if q.entries[key] == q.asking {
		q.asking = nil
	}
	delete(q.entries, key)
}

// EndBackoff ends the delay after failures: their cause may be gone.
func (q *Queue[K]) EndBackoff(key K) { q.update(key, (*entry).endBackoff) }

// State is what the queue knows of a key.
func (q *Queue[K]) State(key K) (s State) {
	q.update(key, func(e *entry) {
		s = State{Pending: e.pending(), Running: e.running, Last: e.last, Planned: e.planned, BackoffUntil: e.backoff.Until()}
	})
	return s
}

// InProgress is how many keys are reconciled now.
func (q *Queue[K]) InProgress() int { return q.slots.Used() }

func (q *Queue[K]) load() QueueLoad {
	return QueueLoad{Name: q.Name, Due: q.queue.Len() + q.slots.Waiting() + q.slots.Used(), Done: q.done.Load()}
}

func (q *Queue[K]) update(key K, f func(*entry)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil {
		f(e)
	}
}

// engineIsBack ends the delays whose cause was the engine's absence.
func (q *Queue[K]) engineIsBack() {
	q.mu.Lock()
	var retried []K
	for key, e := range q.entries {
		if e.engineIsBack(q.c.MaxAPIBackoff) {
			retried = append(retried, key)
		}
	}
	q.mu.Unlock()
	names := make(map[K]string, len(retried))
	for _, key := range retried {
		names[key] = fmt.Sprint(key)
	}
	// The entries are in no order. What is worked on first must not differ each time.
	slices.SortFunc(retried, func(a, b K) int { return strings.Compare(names[a], names[b]) })
	for _, key := range retried {
		q.Enqueue(key, CauseRetry, PriorityHigh)
	}
}

func (q *Queue[K]) shutDown() { q.queue.ShutDown() }

// start starts the queue. It begins nothing once stopping is closed: the next leader
// does what is still queued then. work is the context of the reconciles.
func (q *Queue[K]) start(work context.Context, stopping <-chan struct{}, workers *sync.WaitGroup) {
	work = pprof.WithLabels(work, pprof.Labels(QueueLabel, q.Name))
	serve := func(key K, due time.Time) {
		defer workers.Done()
		defer q.done.Add(1)
		defer q.queue.Done(key)
		defer q.c.Metrics.Queues.Begin(q.Name, due)()
		pprof.SetGoroutineLabels(work)
		select {
		case <-stopping:
		default:
			q.serve(work, stopping, key)
		}
	}
	workers.Go(func() {
		for {
			// The queue gives out no key again before it is done.
			key, shutdown := q.queue.Get()
			if shutdown {
				return
			}
			due := time.Now() // No queue gets longer here: each key waits for its slot instead.
			workers.Add(1)
			q.slots.Start(q.Namespace(key), func() { serve(key, due) })
		}
	})
}

// serve reconciles a key, and repeats that while the Result asks for it at once.
func (q *Queue[K]) serve(ctx context.Context, stopping <-chan struct{}, key K) {
	trigger, wait, due := q.begin(key)
	if wait > 0 {
		q.queue.AddAfter(key, wait)
	}
	if !due {
		return
	}
	defer q.end(key)
	for n := 1; ; n++ {
		recorded, flush := withRecording(withTrigger(ctx, trigger), q.c.DecisionLog)
		result, err := q.Reconcile(recorded, key)
		flush()
		if err != nil {
			q.failed(ctx, key, result, err)
			return
		}
		q.update(key, q.succeeded)
		select {
		case <-stopping:
			return
		default:
		}
		if result.Requeue && n < maxImmediate {
			trigger = Trigger{Cause: CauseRequeue, At: time.Now()}
			continue
		}
		if result.Requeue {
			result.RequeueAfter = max(q.MinInterval, immediatePause)
		}
		q.plan(key, result.RequeueAfter)
		return
	}
}

// begin begins a reconcile, or says how long the key has to wait for one. wait is 0 if it needs
// none: it was forgotten, or an earlier reconcile has done what the key was queued for.
func (q *Queue[K]) begin(key K) (t Trigger, wait time.Duration, due bool) {
	now := time.Now()
	busy := q.Low.Busy != nil && q.Low.Busy()
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		return Trigger{}, 0, false
	}
	if !e.hasReason() {
		return Trigger{}, 0, false
	}
	wait = e.wait(now, q.MinInterval, q.EventsWait)
	if busy {
		wait = max(wait, e.lowPriorityWait(now, q.Low))
	}
	if wait > 0 {
		return Trigger{}, wait, false
	}
	return e.begin(now), 0, true
}

// end ends the reconciles of a key, and forgets it if there is nothing to remember.
func (q *Queue[K]) end(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		return
	}
	e.running = false
	if q.MinInterval == 0 && !e.pending() && e.planned.IsZero() {
		q.drop(key)
	}
}

// succeeded ends the delay after failures. q.mu is held.
func (q *Queue[K]) succeeded(e *entry) {
	if q.asking == e {
		q.asking = nil
	}
	e.succeeded()
}

// plan makes the key due later; 0: not.
func (q *Queue[K]) plan(key K, delay time.Duration) {
	if delay <= 0 {
		return
	}
	delay = min(delay, q.MaxRequeueAfter)
	q.update(key, func(e *entry) { e.planned = time.Now().Add(delay) })
	q.queue.AddAfter(key, delay)
}

// failed makes the key due again after its backoff, or sooner if the Result says so.
func (q *Queue[K]) failed(ctx context.Context, key K, result Result, err error) {
	var delay time.Duration
	q.update(key, func(e *entry) {
		if result.Progressed {
			e.backoff.Progressed()
		}
		delay = e.failed(err, q.c.BackoffLimits(), q.latest(e, err, result.RequeueAfter))
	})
	if delay == 0 {
		return // Its object does not exist any more.
	}
	q.queue.AddAfter(key, delay)
	if !q.worthLogging(err) {
		return
	}
	attrs := []slog.Attr{slog.Duration("retryAfter", delay), slog.Any("error", err)}
	if q.Describe != nil {
		attrs = append(q.Describe(key), attrs...)
	}
	q.c.Logger.LogAttrs(ctx, slog.LevelWarn, "reconcile failed", attrs...)
}

// latest is after which time at the latest a key that has failed is tried again; 0: after its backoff. planned is
// Result.RequeueAfter. q.mu is held.
func (q *Queue[K]) latest(e *entry, err error, planned time.Duration) time.Duration {
	unreachable := errors.Is(err, ErrEngine) && status.Code(err) == codes.Unavailable
	switch {
	case unreachable && (q.asking == nil || q.asking == e):
		q.asking = e
		return cmp.Or(min(planned, engineAskedAfter), engineAskedAfter)
	case q.asking == e:
		q.asking = nil
	}
	return planned
}

// worthLogging: an engine that is away is logged once for all keys.
func (q *Queue[K]) worthLogging(err error) bool {
	return !errors.Is(err, ErrEngine) && !errors.Is(err, context.Canceled) && (q.Quiet == nil || !q.Quiet(err))
}
