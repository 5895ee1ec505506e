package ttl

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/shadow"
)

const (
	// eventComponent is the built-in controller's source of events.
	eventComponent = "ttl-after-finished-controller"

	causeJob    controller.Cause = "job.event"
	causePolicy controller.Cause = "policy.event"
)

// Controller deletes finished Jobs. It is made by New and runs once.
type Controller struct {
	cfg      Config
	base     *controller.Controller
	queue    *controller.Queue[jobKey]
	scope    controller.Scope
	api      *api.Client
	delay    prometheus.Observer // The time from when a Job was due to be deleted to its deletion.
	comparer *shadow.Comparer    // nil unless in shadow mode.
}

// jobKey names a Job. Another Job of the same name has another UID (invariant I8).
type jobKey struct {
	namespace, name string
	uid             types.UID
}

func (k jobKey) describe() []slog.Attr {
	return []slog.Attr{slog.String("namespace", k.namespace), slog.String("job", k.name), slog.String("uid", string(k.uid))}
}

// New checks the configuration (controller.ErrConfig), registers the metrics and adds a
// handler to Config.Jobs. Nothing runs before Run.
func New(cfg Config) (*Controller, error) {
	c, err := build(cfg)
	if err == nil {
		err = c.addHandler()
	}
	if err != nil {
		return nil, fmt.Errorf("TTL after finished: %w", err)
	}
	return c, nil
}

func build(cfg Config) (*Controller, error) {
	if cfg.Jobs == nil {
		return nil, controller.Missing("Jobs")
	}
	base, err := controller.New(cfg.Config, controller.Identity{Component: eventComponent, Scope: telemetry.TTLTracerName})
	if err != nil {
		return nil, err
	}
	r := &telemetry.Registrar{To: cfg.Registerer}
	delay := r.Histogram("ttl_after_finished_controller", "job_deletion_duration_seconds",
		"The time from when a finished Job was due to be deleted to when it was.", prometheus.ExponentialBuckets(0.1, 2, 14)).WithLabelValues()
	if r.Err != nil {
		return nil, r.Err
	}
	c := &Controller{base: base, api: base.API(), delay: delay}
	if cfg.Shadow != nil {
		c.comparer = cfg.Shadow.OnlyCompare(base, shadow.TypeFinishedJob)
	}
	cfg.Config = base.Config
	c.cfg, c.scope = cfg, cfg.Scope()
	c.queue = controller.NewQueue(base, controller.Options[jobKey]{
		Name: telemetry.TTLQueue, Reconcile: c.Reconcile, Describe: jobKey.describe, Namespace: func(key jobKey) string { return key.namespace },
	})
	return c, nil
}

func (c *Controller) addHandler() error {
	jobs, err := c.cfg.Jobs.AddOrderedEventHandler(controller.Handler(
		func(_, job *batchv1.Job) { c.enqueue(job, causeJob) }, func(job *batchv1.Job) { c.comparer.Gone(job.UID) }))
	if err != nil {
		return fmt.Errorf("job handler: %w", err)
	}
	c.base.AddCache(nil, jobs, c.cfg.Policies.Settled)
	return c.cfg.Policies.Follow(c.cfg.Jobs, func(obj any) { c.enqueue(obj.(*batchv1.Job), causePolicy) })
}

// mayExpire reports whether anything may set a time to live for the Job: its spec, or its
// policy. Most finished Jobs have neither, so the engine is not asked about them.
func (c *Controller) mayExpire(job *batchv1.Job) bool {
	return job.Spec.TTLSecondsAfterFinished != nil || c.cfg.Policies.Asked(job.Namespace, job.Annotations)
}

func (c *Controller) enqueue(job *batchv1.Job, cause controller.Cause) {
	if c.scope.Expires(job) {
		c.queue.Enqueue(jobKey{job.Namespace, job.Name, job.UID}, cause, controller.PriorityNormal)
	}
}

// Ready is nil once the caches are filled, and controller.ErrNotReady before that.
func (c *Controller) Ready() error { return c.base.Ready() }

// Queues returns what the queue has to do.
func (c *Controller) Queues() []controller.QueueLoad { return c.base.Queues() }

// Run deletes Jobs until ctx ends; see controller.Controller.Run.
func (c *Controller) Run(ctx context.Context) error { return c.base.Run(ctx) }
