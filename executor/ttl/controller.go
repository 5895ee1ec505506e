package ttl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"jobpolicy.dev/executor/delayqueue"
	"jobpolicy.dev/executor/events"
	"jobpolicy.dev/executor/metrics"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	// AnnotationAfterComplete and AnnotationAfterFailed of a Job go before its
	// spec.ttlSecondsAfterFinished. Whole seconds.
	AnnotationAfterComplete = "jobpolicy.dev/ttl-seconds-after-complete"
	AnnotationAfterFailed   = "jobpolicy.dev/ttl-seconds-after-failed"
	// AnnotationDefault of a namespace is for its Jobs that say nothing
	// themselves. Whole seconds.
	AnnotationDefault = "jobpolicy.dev/default-ttl-seconds-after-finished"
)

const (
	// eventComponent is the source of events: the upstream controller's.
	eventComponent = "ttl-after-finished-controller"
	// apiTimeout bounds one call of the API server, waiting for the client's rate
	// limit included.
	apiTimeout = 60 * time.Second
	// maxWait bounds how far ahead a look is planned. A time was worked out by a
	// clock that may have been wrong, and may have been set since.
	maxWait = 10 * time.Minute
	// namespaceIndex finds finished Jobs by namespace.
	namespaceIndex = "jobpolicy.dev/finished-in-namespace"
)

// ErrNotReady says that the caches are not filled yet.
var ErrNotReady = errors.New("caches for the time to live of jobs are not synced")

// Decider answers what is to become of a Job.
type Decider interface {
	DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
}

// Controller deletes Jobs. It is made by New and run once.
type Controller struct {
	cfg     Config
	log     *slog.Logger
	metrics *ttlMetrics

	namespaces                 cache.SharedIndexInformer
	jobsReady, namespacesReady cache.ResourceEventHandlerRegistration
	queue                      workqueue.TypedRateLimitingInterface[jobKey]
	broadcaster                *events.Broadcaster
	recorder                   record.EventRecorder
}

// jobKey names a Job; another one of its name is not it (invariant I8).
type jobKey struct {
	namespace, name string
	uid             types.UID
}

// New checks the configuration (ErrConfig), registers the metrics and attaches
// itself to Config.Jobs. Nothing runs before Run.
func New(cfg Config) (*Controller, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	own, err := newTTLMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		cfg: cfg, log: cfg.Logger, metrics: own,
		queue: delayqueue.NewRateLimited(
			workqueue.NewTypedItemExponentialFailureRateLimiter[jobKey](cfg.APIBackoff, cfg.MaxAPIBackoff),
			own.shared.QueueName(metrics.TTLQueue), own.shared.Queues),
	}
	c.broadcaster, err = events.New(events.Config{Client: cfg.Events, Component: eventComponent, Registerer: cfg.Registerer, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	c.recorder = c.broadcaster
	return c, c.attach()
}

func (c *Controller) attach() error {
	c.namespaces = coreinformers.NewNamespaceInformer(c.cfg.Client, 0, cache.Indexers{})
	if err := c.namespaces.SetTransform(trim); err != nil {
		return fmt.Errorf("namespace transform: %w", err)
	}
	if err := c.cfg.Jobs.AddIndexers(cache.Indexers{namespaceIndex: indexFinished}); err != nil {
		return fmt.Errorf("index of jobs: %w", err)
	}
	var err error
	if c.jobsReady, err = c.cfg.Jobs.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.seen(obj.(*batchv1.Job)) },
		UpdateFunc: func(_, obj any) { c.seen(obj.(*batchv1.Job)) },
	}); err != nil {
		return fmt.Errorf("job handler: %w", err)
	}
	if c.namespacesReady, err = c.namespaces.AddEventHandler(cache.ResourceEventHandlerFuncs{
		// Its Jobs may have finished before the namespace was seen.
		AddFunc:    func(obj any) { c.namespaceChanged(&corev1.Namespace{}, obj.(*corev1.Namespace)) },
		UpdateFunc: func(old, obj any) { c.namespaceChanged(old.(*corev1.Namespace), obj.(*corev1.Namespace)) },
	}); err != nil {
		return fmt.Errorf("namespace handler: %w", err)
	}
	return nil
}

// trim keeps of a namespace its name and annotations.
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

// inCare reports whether the Job may be ours to delete.
func (c *Controller) inCare(job *batchv1.Job) bool {
	if wire.FinishedCondition(job) == nil || job.DeletionTimestamp != nil {
		return false
	}
	return c.cfg.ReplaceBuiltin || (job.Spec.ManagedBy != nil && *job.Spec.ManagedBy == c.cfg.ManagedBy)
}

// timed reports whether anything says how long the Job lives. Most finished Jobs
// are kept for ever, and there is nothing to ask about them.
func (c *Controller) timed(job *batchv1.Job) bool {
	o := c.options(job)
	return job.Spec.TTLSecondsAfterFinished != nil || o.SecondsAfterComplete != nil || o.SecondsAfterFailed != nil || o.NamespaceDefault != nil
}

func (c *Controller) seen(job *batchv1.Job) {
	if c.inCare(job) {
		c.queue.Add(jobKey{job.Namespace, job.Name, job.UID})
	}
}

// namespaceChanged looks at the Jobs of a namespace whose default has changed.
func (c *Controller) namespaceChanged(old, ns *corev1.Namespace) {
	before, had := old.Annotations[AnnotationDefault]
	after, has := ns.Annotations[AnnotationDefault]
	if before == after && had == has {
		return
	}
	objects, err := c.cfg.Jobs.GetIndexer().ByIndex(namespaceIndex, ns.Name)
	if err != nil {
		panic("the index of finished Jobs was added in New: " + err.Error())
	}
	for _, obj := range objects {
		c.seen(obj.(*batchv1.Job))
	}
}

// Ready is nil once the caches are synced and ErrNotReady before.
func (c *Controller) Ready() error {
	if c.jobsReady.HasSynced() && c.namespacesReady.HasSynced() {
		return nil
	}
	return ErrNotReady
}

// Run deletes Jobs until ctx ends, then lets deletions in progress finish for at
// most Config.DrainPeriod, and returns nil.
func (c *Controller) Run(ctx context.Context) error {
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	c.broadcaster.Start(work)
	defer c.broadcaster.Shutdown()
	var informing, working sync.WaitGroup
	defer informing.Wait()
	defer working.Wait()
	defer c.queue.ShutDown()
	informing.Go(func() { c.namespaces.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.jobsReady.HasSynced, c.namespacesReady.HasSynced) {
		return nil
	}
	for range c.cfg.Workers {
		working.Go(func() { c.worker(ctx.Done(), work) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	patience := time.AfterFunc(c.cfg.DrainPeriod, abandon)
	defer patience.Stop()
	working.Wait()
	c.broadcaster.Drain(work)
	return nil
}

// worker works until the queue is shut down. What is still queued when stop is
// closed is left to the next leader.
func (c *Controller) worker(stop <-chan struct{}, ctx context.Context) {
	for {
		key, stopped := c.queue.Get()
		if stopped {
			return
		}
		select {
		case <-stop:
		default:
			c.serve(ctx, key)
		}
		c.queue.Done(key)
	}
}

func (c *Controller) serve(ctx context.Context, key jobKey) {
	after, err := c.round(ctx, key)
	if err != nil {
		c.log.WarnContext(ctx, "finished job not looked after", slog.String("namespace", key.namespace), slog.String("job", key.name),
			slog.String("uid", string(key.uid)), slog.Any("error", err))
		c.queue.AddRateLimited(key)
		return
	}
	c.queue.Forget(key)
	if after > 0 {
		c.queue.AddAfter(key, after)
	}
}
