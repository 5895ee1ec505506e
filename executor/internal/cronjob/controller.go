package cronjob

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/executor/wire"
)

const (
	// ownerIndex finds Jobs by the CronJob that controls them.
	ownerIndex = "jobpolicy.dev/controlling-cronjob"
	// eventComponent is the built-in controller's source of events.
	eventComponent = "cronjob-controller"
)

// Causes of reconciles.
const (
	causeCronJob controller.Cause = "cronjob.event"
	causeJob     controller.Cause = "job.event"
	causePolicy  controller.Cause = "policy.event"
)

// Controller runs CronJobs. It is made by New and runs once.
type Controller struct {
	cfg      Config
	base     *controller.Controller
	queue    *controller.Queue[cronKey]
	scope    controller.Scope
	api      *api.Client
	applier  *applier         // nil in shadow mode.
	comparer *shadow.Comparer // nil unless in shadow mode.
	informer *controller.Informers

	starts starts

	mu    sync.Mutex
	crons map[types.UID]*cronState
}

// cronKey names a CronJob. Another CronJob of the same name has another UID (invariant I8).
type cronKey struct {
	uid             types.UID
	namespace, name string
}

func (k cronKey) describe() []slog.Attr {
	return []slog.Attr{slog.String("uid", string(k.uid)), slog.String("namespace", k.namespace), slog.String("cronJob", k.name)}
}

// New checks the configuration (controller.ErrConfig), registers the metrics and adds
// handlers and an index to Config.Jobs. Nothing runs before Run.
func New(cfg Config) (*Controller, error) {
	c, err := build(cfg)
	if err == nil {
		err = c.addCaches()
	}
	if err != nil {
		return nil, fmt.Errorf("cron jobs: %w", err)
	}
	return c, nil
}

func build(cfg Config) (*Controller, error) {
	if cfg.Jobs == nil {
		return nil, controller.Missing("Jobs")
	}
	base, err := controller.New(cfg.Config, controller.Identity{Component: eventComponent, Scope: telemetry.CronJobTracerName})
	if err != nil {
		return nil, err
	}
	r := &telemetry.Registrar{To: cfg.Registerer}
	skew := r.Histogram("cronjob_controller", "job_creation_skew_duration_seconds",
		"The time from when a run of a CronJob was due to when its Job was created.", prometheus.ExponentialBuckets(1, 2, 10)).WithLabelValues()
	altered := telemetry.AlteredObjects(r, "Job", "ownerReferences")
	if r.Err != nil {
		return nil, r.Err
	}
	c := &Controller{base: base, api: base.API(), crons: map[types.UID]*cronState{}, starts: starts{begun: map[groupKey]uint64{}}}
	if cfg.Shadow != nil {
		c.comparer = cfg.Shadow.OnlyCompare(base, shadow.TypeCronJob)
	}
	cfg.Config = base.Config
	c.cfg, c.scope = cfg, cfg.Scope()
	if c.comparer == nil {
		c.applier = &applier{api: c.api, base: base, scope: c.scope, skew: skew, altered: altered, starts: &c.starts}
	}
	c.queue = controller.NewQueue(base, controller.Options[cronKey]{
		Name: telemetry.CronJobQueue, Reconcile: c.Reconcile, Describe: cronKey.describe, Quiet: api.NamespaceTerminating,
		Namespace: func(key cronKey) string { return key.namespace },
	})
	return c, nil
}

func (c *Controller) addCaches() error {
	c.informer = controller.NewInformers(c.cfg.Namespaces, func(namespace string) cache.SharedIndexInformer {
		return batchinformers.NewCronJobInformer(c.cfg.Client, namespace, 0, cache.Indexers{})
	})
	if err := c.informer.SetTransform(controller.WithoutManagedFields); err != nil {
		return fmt.Errorf("cron job transform: %w", err)
	}
	if err := c.cfg.Jobs.AddIndexers(cache.Indexers{ownerIndex: indexByOwner}); err != nil {
		return fmt.Errorf("index of jobs: %w", err)
	}
	crons, err := c.informer.AddOrderedEventHandler(controller.Handler(c.cronSeen, c.cronGone))
	if err != nil {
		return fmt.Errorf("cron job handler: %w", err)
	}
	jobs, err := c.cfg.Jobs.AddOrderedEventHandler(controller.Handler(c.jobSeen, c.jobGone))
	if err != nil {
		return fmt.Errorf("job handler: %w", err)
	}
	c.base.AddCache(c.informer.Run, crons, jobs)
	c.base.AddCache(nil, c.cfg.Policies.Settled)
	return c.cfg.Policies.Follow(c.informer, func(obj any) { c.policyChanged(obj.(*batchv1.CronJob)) })
}

// controllingUID is the UID of the CronJob that controls the Job, or empty.
func controllingUID(job *batchv1.Job) types.UID {
	if ref := wire.ControllerOf(job, wire.CronJobKind.GroupKind()); ref != nil {
		return ref.UID
	}
	return ""
}

// indexByOwner is the ownerIndex. An owner reference means an object in the namespace of the
// Job, and anybody may write any UID there. So the Jobs of a CronJob are in its namespace.
func indexByOwner(obj any) ([]string, error) {
	job, ok := obj.(*batchv1.Job)
	if !ok || controllingUID(job) == "" {
		return nil, nil
	}
	return []string{ownerKey(job.Namespace, controllingUID(job))}, nil
}

// ownerKey is the key of a CronJob in ownerIndex.
func ownerKey(namespace string, uid types.UID) string { return namespace + "/" + string(uid) }

// Ready is nil once the caches are filled, and controller.ErrNotReady before that.
func (c *Controller) Ready() error { return c.base.Ready() }

// Queues returns what the queue has to do.
func (c *Controller) Queues() []controller.QueueLoad { return c.base.Queues() }

// Run runs CronJobs until ctx ends; see controller.Controller.Run.
func (c *Controller) Run(ctx context.Context) error { return c.base.Run(ctx) }
