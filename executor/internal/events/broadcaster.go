package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/workqueue"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/telemetry"
)

const (
	// posters is how many events are sent at the same time, and namespacePosters how
	// many of them in one namespace: a webhook that hangs there must not delay others.
	posters, namespacePosters = 8, 4
	// maxQueued bounds the memory of a burst: an event takes about half a kilobyte.
	maxQueued = 50_000
	// postTimeout bounds one call of the API server, including the wait for the
	// client's rate limit.
	postTimeout = 30 * time.Second
	// maxTries, firstDelay and maxDelay: if the API server is away, an event is tried for two
	// and a half minutes.
	maxTries             = 12
	firstDelay, maxDelay = 250 * time.Millisecond, 30 * time.Second
	// maxNames is how many names are tried for an event if other events have them.
	maxNames = 10
)

// Why an event was dropped: values of the metric's label.
const (
	dropFull    = "queue_full"
	dropRefused = "refused"
	dropTries   = "tries_exceeded"
	dropStopped = "stopped"
	dropInvalid = "invalid"
)

// Config is what a Broadcaster is made of. Client and Component are required.
type Config struct {
	// Client writes the events. Give it a rate limit of its own, so that events do not
	// delay other writes.
	Client typedcorev1.EventsGetter
	// Component is the source of the events.
	Component string
	// Limits say which events of one object are combined and left out. The zero
	// value: client-go's defaults.
	Limits record.CorrelatorOptions
	// Registerer takes the metric. nil: it is kept but not exported.
	Registerer prometheus.Registerer
	// Logger is used with its Context methods only. Default: slog.Default().
	Logger *slog.Logger
	// Now tells wall time, for the events' timestamps. Default time.Now.
	Now func() time.Time
}

// ErrConfig says that a Config cannot be used.
var ErrConfig = errors.New("invalid configuration of events")

// A Broadcaster records events and sends them. It is a record.EventRecorder.
// Events that are recorded before Start are sent after it.
type Broadcaster struct {
	cfg        Config
	correlator *record.EventCorrelator
	dropped    *prometheus.CounterVec
	queue      workqueue.TypedRateLimitingInterface[object]
	working    sync.WaitGroup
	stop       context.CancelFunc
	backlog    backlog
}

// An object is what events are about.
type object struct {
	namespace, kind, name string
	uid                   types.UID
}

// An event is one that was recorded and not sent yet.
type event struct {
	about                 *corev1.ObjectReference
	kind, reason, message string
	annotations           map[string]string
	at                    time.Time
	named                 int64

	// result is what the correlator has decided; nil before the first try.
	result *record.EventCorrelateResult
	// unanswered: a try may have taken effect.
	unanswered bool
}

// New checks the configuration (ErrConfig) and registers the metric. Nothing is
// sent before Start.
func New(cfg Config) (*Broadcaster, error) {
	if cfg.Client == nil || cfg.Component == "" {
		return nil, fmt.Errorf("required are Client and Component: %w", ErrConfig)
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.Now = clock.New(cfg.Now)
	m := &telemetry.Registrar{To: cfg.Registerer}
	b := &Broadcaster{
		cfg:        cfg,
		correlator: record.NewEventCorrelatorWithOptions(cfg.Limits),
		dropped:    m.Counter("jobpolicy", "events_dropped_total", "Events that were recorded and not sent, by component and reason. Events that the limits for one object leave out do not count.", "component", "reason"),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[object](firstDelay, maxDelay),
			workqueue.TypedRateLimitingQueueConfig[object]{DelayingQueue: clock.NewQueue[object]("", nil)}),
		backlog: newBacklog(),
	}
	for _, reason := range []string{dropFull, dropRefused, dropTries, dropStopped, dropInvalid} {
		b.dropped.WithLabelValues(cfg.Component, reason) // Exported as 0 before the first one.
	}
	return b, m.Err
}

// Event implements record.EventRecorder.
func (b *Broadcaster) Event(about runtime.Object, kind, reason, message string) {
	b.record(about, nil, kind, reason, message)
}

// Eventf implements record.EventRecorder.
func (b *Broadcaster) Eventf(about runtime.Object, kind, reason, format string, args ...any) {
	b.record(about, nil, kind, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (b *Broadcaster) AnnotatedEventf(about runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	b.record(about, annotations, kind, reason, fmt.Sprintf(format, args...))
}

func (b *Broadcaster) record(about runtime.Object, annotations map[string]string, kind, reason, message string) {
	ref, err := reference.GetReference(scheme.Scheme, about)
	if err != nil {
		b.drop(dropInvalid, 1)
		b.cfg.Logger.WarnContext(context.Background(), "event about an unknown kind of object", slog.String("reason", reason), slog.Any("error", err))
		return
	}
	ev := &event{about: ref, annotations: annotations, kind: kind, reason: reason, message: message, at: b.cfg.Now()}
	o := object{ref.Namespace, ref.Kind, ref.Name, ref.UID}
	why, first := b.backlog.add(o, ev)
	if why == "" {
		b.queue.Add(o)
		return
	}
	b.drop(why, 1)
	if first {
		b.cfg.Logger.WarnContext(context.Background(), "events dropped: too many are queued", slog.Int("queued", maxQueued))
	}
}

func (b *Broadcaster) drop(reason string, n int) {
	b.dropped.WithLabelValues(b.cfg.Component, reason).Add(float64(n))
}

// Start sends events until ctx ends or Shutdown is called.
func (b *Broadcaster) Start(ctx context.Context) {
	ctx, b.stop = context.WithCancel(ctx)
	for range posters {
		b.working.Go(func() { b.poster(ctx) })
	}
}

// Drain takes no more events, and waits until those that are queued are sent or ctx ends.
func (b *Broadcaster) Drain(ctx context.Context) {
	select {
	case <-b.backlog.close():
	case <-ctx.Done():
	}
}

// Shutdown ends the posters. It drops what is still queued.
func (b *Broadcaster) Shutdown() {
	b.queue.ShutDown()
	if b.stop != nil {
		b.stop()
	}
	b.working.Wait()
	if n := b.backlog.drop(); n > 0 {
		b.drop(dropStopped, n)
		b.cfg.Logger.WarnContext(context.Background(), "events dropped: shutting down", slog.Int("queued", n))
	}
}
