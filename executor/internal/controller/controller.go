package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/events"
	"jobpolicy.dev/executor/internal/telemetry"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var (
	// ErrNotReady says that the caches are not filled yet.
	ErrNotReady = errors.New("caches are not synced")
	// ErrStarted says that Run was called before; a Controller runs once.
	ErrStarted = errors.New("controller was started before")
)

// Identity is how a controller names itself to others.
type Identity struct {
	// Component is the source of its events: the built-in controller's, so that
	// filters by component keep working.
	Component string
	// Scope is the instrumentation scope of its spans.
	Scope string
	// EventLimits say which events of one object are combined or left out. The zero
	// value: client-go's defaults.
	EventLimits record.CorrelatorOptions
}

// A Controller runs queues over caches. It is made by New and runs once.
type Controller struct {
	Config
	telemetry.Tracer
	Metrics *telemetry.Shared
	// Recorder sends events about objects.
	Recorder record.EventRecorder

	scope       string // Of the spans; it names this controller in the log.
	broadcaster *events.Broadcaster
	engine      engineHealth
	caches      []filled
	queues      []runner
	tasks       []func(context.Context)

	stage atomic.Int32 // one of the stages below
}

// The stages of a controller, in their order.
const (
	created int32 = iota
	filling       // the caches
	ready
)

// filled is a group of caches, and the function that fills them.
type filled struct {
	run    func(context.Context)
	synced []cache.InformerSynced
}

// A runner is a Queue with keys of any type.
type runner interface {
	start(work context.Context, stopping <-chan struct{}, workers *sync.WaitGroup)
	shutDown()
	engineIsBack()
	load() QueueLoad
}

// New checks the configuration (ErrConfig), sets its defaults and registers the
// metrics. Nothing runs before Run.
func New(cfg Config, id Identity) (*Controller, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	shared, err := telemetry.NewShared(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	broadcaster, err := events.New(events.Config{
		Client: cfg.Events, Component: id.Component, Limits: id.EventLimits, Registerer: cfg.Registerer, Logger: cfg.Logger, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	return &Controller{
		Config: cfg, Tracer: telemetry.NewTracer(cfg.TracerProvider, id.Scope), Metrics: shared, Recorder: broadcaster,
		scope: id.Scope, broadcaster: broadcaster,
	}, nil
}

// AddCache adds a group of caches that must be filled before anything is reconciled. Run
// fills the groups in the order in which they were added, each one after the group before
// is filled. run fills the group and keeps it up to date until its context ends; nil:
// somebody else does that.
func (c *Controller) AddCache(run func(context.Context), synced ...cache.InformerSynced) {
	c.caches = append(c.caches, filled{run, synced})
}

// AddTask adds a function that runs beside the workers until its context ends.
func (c *Controller) AddTask(task func(context.Context)) { c.tasks = append(c.tasks, task) }

// Ready is nil once the caches are filled, and ErrNotReady before that.
func (c *Controller) Ready() error {
	if c.stage.Load() != ready {
		return ErrNotReady
	}
	return nil
}

// Queues returns what the queues have to do.
func (c *Controller) Queues() []QueueLoad {
	loads := make([]QueueLoad, len(c.queues))
	for i, q := range c.queues {
		loads[i] = q.load()
	}
	return loads
}

// BackoffLimits returns the limits of the configuration.
func (c *Controller) BackoffLimits() clock.Limits {
	return clock.Limits{First: c.APIBackoff, Max: c.MaxAPIBackoff}
}

// Run works until ctx ends. Then it begins no more reconciles, and waits at most
// Config.DrainPeriod until those in progress have finished and the events that are left are
// sent. It returns nil. It can be called once.
func (c *Controller) Run(ctx context.Context) error {
	if !c.stage.CompareAndSwap(created, filling) {
		return ErrStarted
	}
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer c.shutDownQueues()
	c.broadcaster.Start(work)
	defer c.broadcaster.Shutdown()
	// The caches stay up to date while the last reconciles finish.
	caching, stopCaching := context.WithCancel(work)
	var informers sync.WaitGroup
	defer informers.Wait()
	defer stopCaching()
	if !c.fillCaches(ctx, caching, &informers) {
		return nil
	}
	c.Logger.InfoContext(ctx, "controller started", c.attr())
	var workers sync.WaitGroup
	for _, task := range c.tasks {
		workers.Go(func() { task(ctx) })
	}
	for _, q := range c.queues {
		q.start(work, ctx.Done(), &workers)
	}
	<-ctx.Done()
	c.shutDownQueues()
	patience := time.AfterFunc(c.DrainPeriod, abandon)
	defer patience.Stop()
	workers.Wait()
	c.broadcaster.Drain(work)
	c.Logger.InfoContext(work, "controller stopped", c.attr())
	return nil
}

// fillCaches fills the caches, and reports whether all were filled before ctx ended.
func (c *Controller) fillCaches(ctx, caching context.Context, informers *sync.WaitGroup) bool {
	for _, f := range c.caches {
		if f.run != nil {
			informers.Go(func() { f.run(caching) })
		}
		if !cache.WaitForCacheSync(ctx.Done(), f.synced...) {
			return false
		}
	}
	c.stage.Store(ready)
	return true
}

func (c *Controller) shutDownQueues() {
	for _, q := range c.queues {
		q.shutDown()
	}
}

func (c *Controller) attr() slog.Attr { return slog.String("controller", c.scope) }

// API returns a client that counts refused writes, and sends the events about them.
func (c *Controller) API() *api.Client {
	return &api.Client{Kubernetes: c.Client, Core: c.Client.CoreV1(), Tracer: c.Tracer, Refused: c.Metrics.RefusedWrites, Recorder: c.Recorder, Now: c.Now}
}

// RecordEvents sends the events of a decision about an object.
func (c *Controller) RecordEvents(about runtime.Object, decided []*jobpolicyv1.JobEvent) {
	for _, ev := range decided {
		kind := corev1.EventTypeNormal
		if ev.GetType() == jobpolicyv1.EventType_EVENT_TYPE_WARNING {
			kind = corev1.EventTypeWarning
		}
		c.Recorder.Event(about, kind, ev.GetReason(), ev.GetMessage())
	}
}
