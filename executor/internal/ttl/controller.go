package ttl

import (
	"context"
	"fmt"
	"log/slog"
	"maps"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/executor/wire"
)

const (
	// eventComponent is the built-in controller's source of events.
	eventComponent = "ttl-after-finished-controller"
	// namespaceIndex finds finished Jobs by namespace.
	namespaceIndex = "jobpolicy.dev/finished-in-namespace"

	causeJob       controller.Cause = "job.event"
	causeNamespace controller.Cause = "namespace.event"
)

// Controller deletes finished Jobs. It is made by New and runs once.
type Controller struct {
	cfg        Config
	base       *controller.Controller
	queue      *controller.Queue[jobKey]
	scope      controller.Scope
	api        *api.Client
	delay      prometheus.Observer       // The time from when a Job was due to be deleted to its deletion.
	namespaces cache.SharedIndexInformer // nil with Config.Namespaces
	comparer   *shadow.Comparer          // nil unless in shadow mode.
}

// jobKey names a Job. Another Job of the same name has another UID (invariant I8).
type jobKey struct {
	namespace, name string
	uid             types.UID
}

func (k jobKey) describe() []slog.Attr {
	return []slog.Attr{slog.String("namespace", k.namespace), slog.String("job", k.name), slog.String("uid", string(k.uid))}
}

// New checks the configuration (controller.ErrConfig), registers the metrics and adds
// handlers and an index to Config.Jobs. Nothing runs before Run.
func New(cfg Config) (*Controller, error) {
	c, err := build(cfg)
	if err == nil {
		err = c.addCaches()
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

func (c *Controller) addCaches() error {
	if err := c.cfg.Jobs.AddIndexers(cache.Indexers{namespaceIndex: indexFinished}); err != nil {
		return fmt.Errorf("index of jobs: %w", err)
	}
	jobs, err := c.cfg.Jobs.AddEventHandler(controller.Handler(
		func(_, job *batchv1.Job) { c.enqueue(job, causeJob) }, func(job *batchv1.Job) { c.comparer.Gone(job.UID) }))
	if err != nil {
		return fmt.Errorf("job handler: %w", err)
	}
	if len(c.cfg.Namespaces) > 0 {
		c.base.AddCache(nil, jobs) // Rights in these namespaces do not include watching Namespaces.
		return nil
	}
	return c.addNamespaces(jobs)
}

// addNamespaces watches namespaces, because their annotations may set times to live.
func (c *Controller) addNamespaces(jobs cache.InformerSynced) error {
	c.namespaces = coreinformers.NewNamespaceInformer(c.cfg.Client, 0, cache.Indexers{})
	if err := c.namespaces.SetTransform(trim); err != nil {
		return fmt.Errorf("namespace transform: %w", err)
	}
	namespaces, err := c.namespaces.AddEventHandler(controller.Handler(c.namespaceSeen, nil))
	if err != nil {
		return fmt.Errorf("namespace handler: %w", err)
	}
	c.base.AddCache(c.namespaces.RunWithContext, jobs, namespaces.HasSynced)
	return nil
}

// trim keeps only the identity and the annotations of a namespace.
func trim(obj any) (any, error) {
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return obj, nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: ns.Name, UID: ns.UID, ResourceVersion: ns.ResourceVersion, Annotations: ns.Annotations,
	}}, nil
}

func indexFinished(obj any) ([]string, error) {
	job, ok := obj.(*batchv1.Job)
	if !ok || wire.FinishedCondition(job) == nil {
		return nil, nil
	}
	return []string{job.Namespace}, nil
}

// mayExpire reports whether anything may set a time to live for the Job: its spec, or an
// annotation that the engine may read. Most finished Jobs have neither, so the engine is
// not asked about them.
func (c *Controller) mayExpire(job *batchv1.Job) bool {
	return job.Spec.TTLSecondsAfterFinished != nil || len(wire.Annotations(job.Annotations)) > 0 || len(c.namespaceAnnotations(job)) > 0
}

func (c *Controller) enqueue(job *batchv1.Job, cause controller.Cause) {
	if c.scope.Expires(job) {
		c.queue.Enqueue(jobKey{job.Namespace, job.Name, job.UID}, cause, controller.PriorityNormal)
	}
}

// namespaceSeen enqueues the finished Jobs of a namespace if the annotations that the engine may
// read have changed. It also does so for a new namespace with such annotations: the watch may
// show the namespace only after its Jobs have finished.
func (c *Controller) namespaceSeen(old, ns *corev1.Namespace) {
	var before map[string]string
	if old != nil {
		before = wire.Annotations(old.Annotations)
	}
	if maps.Equal(before, wire.Annotations(ns.Annotations)) {
		return
	}
	objects, err := c.cfg.Jobs.In(ns.Name).GetIndexer().ByIndex(namespaceIndex, ns.Name)
	if err != nil {
		panic("the index of finished Jobs was added in New: " + err.Error())
	}
	for _, obj := range objects {
		c.enqueue(obj.(*batchv1.Job), causeNamespace)
	}
}

// Ready is nil once the caches are filled, and controller.ErrNotReady before that.
func (c *Controller) Ready() error { return c.base.Ready() }

// Queues returns what the queue has to do.
func (c *Controller) Queues() []controller.QueueLoad { return c.base.Queues() }

// Run deletes Jobs until ctx ends; see controller.Controller.Run.
func (c *Controller) Run(ctx context.Context) error { return c.base.Run(ctx) }
