package world

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// A settler lets each reconcile of an executor begin up to a microsecond after it is due. client-go passes what a
// later list of a watch shows, and whose objects it lacks, in the order of a map, and the first of these events wakes
// a worker. Without the wait, the map would decide what else the reconcile knows, and which Job is first. An executor
// starts the root span of a reconcile before it reads what it knows of the object.
type settler struct {
	noop.TracerProvider
	seed uint64
}

// Tracer implements trace.TracerProvider.
func (s settler) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return settlingTracer{seed: s.seed}
}

type settlingTracer struct {
	noop.Tracer
	seed uint64
}

// Start implements trace.Tracer.
func (t settlingTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if span := trace.NewSpanStartConfig(options...); span.NewRoot() {
		time.Sleep(t.moment(name, &span))
	}
	return t.Tracer.Start(ctx, name, options...)
}

// settledWithin is how long a reconcile waits at most. Events of one watch are further apart.
const settledWithin = time.Microsecond

// attrCause is an attribute of a root span: what the first event was about. The order of a map may decide it.
const attrCause = "jobpolicy.cause"

// moment follows from the seed, the object and the time, so that reconciles that are due at the same instant begin in
// one order: of timers that end at the same instant, a bubble draws which one is first.
func (t settlingTracer) moment(name string, span *trace.SpanConfig) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // A hash takes everything.
	for _, about := range span.Attributes() {
		if about.Key != attrCause {
			_, _ = h.Write([]byte(about.Value.Emit()))
		}
	}
	return 1 + time.Duration(rand.New(rand.NewPCG(t.seed^h.Sum64(), uint64(time.Now().UnixNano()))).Int64N(int64(settledWithin-1)))
}
