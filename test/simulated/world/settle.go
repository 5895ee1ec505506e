package world

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// A settler lets each reconcile of an executor begin a moment after it is due, and no two at the same instant. client-go
// passes what a later list of a watch shows, and whose objects it lacks, in the order of a map, and the first of these
// events wakes a worker. Without the wait, the map would decide what else the reconcile knows, and which Job is first.
// An executor starts the root span of a reconcile before it reads what it knows of the object.
type settler struct {
	noop.TracerProvider
	seed uint64

	mu  sync.Mutex
	due map[int64][]dueReconcile // By the instant, in nanoseconds.
}

// A dueReconcile waits for the time that it has to wait in addition.
type dueReconcile struct {
	order uint64
	begin chan time.Duration
}

func newSettler(seed uint64) *settler { return &settler{seed: seed, due: map[int64][]dueReconcile{}} }

// Tracer implements trace.TracerProvider.
func (s *settler) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return settlingTracer{settler: s}
}

type settlingTracer struct {
	noop.Tracer
	settler *settler
}

// Start implements trace.Tracer.
func (t settlingTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if span := trace.NewSpanStartConfig(options...); span.NewRoot() {
		t.settler.wait(t.settler.orderOf(name, &span))
	}
	return t.Tracer.Start(ctx, name, options...)
}

// settledAfter is how long a reconcile waits at least, and burstGap the time between two that are due at the same
// instant, and between two events of a burst. So a reconcile may begin between two such events.
const settledAfter, burstGap = time.Nanosecond, 2 * time.Nanosecond

// attrCause is an attribute of a root span: what the first event was about. The order of a map may decide it.
const attrCause = "jobpolicy.cause"

// orderOf is the place of a reconcile among those that are due at the same instant. It follows from the seed and the object.
func (s *settler) orderOf(name string, span *trace.SpanConfig) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(itoa(int(s.seed)) + name)) // A hash takes everything.
	for _, about := range span.Attributes() {
		if about.Key != attrCause {
			_, _ = h.Write([]byte(about.Value.String()))
		}
	}
	return h.Sum64()
}

// wait waits until a reconcile that is due now may begin.
func (s *settler) wait(order uint64) {
	at := time.Now().UnixNano()
	r := dueReconcile{order, make(chan time.Duration, 1)}
	s.mu.Lock()
	s.due[at] = append(s.due[at], r)
	if len(s.due[at]) == 1 {
		time.AfterFunc(settledAfter, func() { s.release(at) })
	}
	s.mu.Unlock()
	time.Sleep(<-r.begin)
}

// release lets the reconciles that were due at an instant begin, one after the other.
func (s *settler) release(at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.due[at]
	delete(s.due, at)
	slices.SortFunc(due, func(a, b dueReconcile) int { return cmp.Compare(a.order, b.order) })
	for n, r := range due {
		r.begin <- time.Duration(n) * burstGap
	}
}
