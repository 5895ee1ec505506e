package cronjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"jobpolicy.dev/executor/delayqueue"
	"jobpolicy.dev/executor/events"
	"jobpolicy.dev/executor/metrics"
)

const (
	// ownerIndex finds Jobs by the UID of the CronJob that controls them.
	ownerIndex = "jobpolicy.dev/controlling-cronjob"
	// eventComponent is the source of events: the upstream controller's, so that
	// whoever filters by it keeps seeing them.
	eventComponent = "cronjob-controller"
	// maxWait bounds how far ahead a round is planned. A time was worked out by a
	// clock that may have been wrong, and may have been set since.
	maxWait = 10 * time.Minute
)

var (
	// ErrNotReady says that the caches are not filled yet.
	ErrNotReady = errors.New("caches of CronJobs are not synced")

	cronJobKind = batchv1.SchemeGroupVersion.WithKind("CronJob")
)

// Controller runs CronJobs. It is made by New and run once.
type Controller struct {
	cfg     Config
	log     *slog.Logger
	metrics *cronMetrics

	informer              cache.SharedIndexInformer
	cronsReady, jobsReady cache.ResourceEventHandlerRegistration
	queue                 workqueue.TypedRateLimitingInterface[types.UID]
	broadcaster           *events.Broadcaster
	recorder              record.EventRecorder

	mu    sync.Mutex
	crons map[types.UID]*cronState
}

// New checks the configuration (ErrConfig), registers the metrics and attaches
// itself to Config.Jobs. Nothing runs before Run.
func New(cfg Config) (*Controller, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	own, err := newCronMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		cfg: cfg, log: cfg.Logger, metrics: own,
		queue: delayqueue.NewRateLimited(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](cfg.APIBackoff, cfg.MaxAPIBackoff),
			own.shared.QueueName(metrics.CronJobQueue), own.shared.Queues),
		crons: map[types.UID]*cronState{},
	}
	c.broadcaster, err = events.New(events.Config{Client: cfg.Events, Component: eventComponent, Registerer: cfg.Registerer, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	c.recorder = c.broadcaster
	if err := c.attach(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Controller) attach() error {
	c.informer = batchinformers.NewCronJobInformer(c.cfg.Client, metav1.NamespaceAll, 0, cache.Indexers{})
	if err := c.informer.SetTransform(trim); err != nil {
		return fmt.Errorf("cron job transform: %w", err)
	}
	if err := c.cfg.Jobs.AddIndexers(cache.Indexers{ownerIndex: indexByOwner}); err != nil {
		return fmt.Errorf("index of jobs: %w", err)
	}
	var err error
	if c.cronsReady, err = c.informer.AddEventHandler(c.cronHandler()); err != nil {
		return fmt.Errorf("cron job handler: %w", err)
	}
	if c.jobsReady, err = c.cfg.Jobs.AddEventHandler(c.jobHandler()); err != nil {
		return fmt.Errorf("job handler: %w", err)
	}
	return nil
}

func trim(obj any) (any, error) {
	if cron, ok := obj.(*batchv1.CronJob); ok {
		cron.ManagedFields = nil
	}
	return obj, nil
}

// controllingUID is the UID of the CronJob that controls the Job, or empty.
func controllingUID(job *batchv1.Job) types.UID {
	ref := metav1.GetControllerOfNoCopy(job)
	if ref == nil || ref.Kind != cronJobKind.Kind || ref.APIVersion != cronJobKind.GroupVersion().String() {
		return ""
	}
	return ref.UID
}

func indexByOwner(obj any) ([]string, error) {
	job, ok := obj.(*batchv1.Job)
	if !ok || controllingUID(job) == "" {
		return nil, nil
	}
	return []string{string(controllingUID(job))}, nil
}

// Ready is nil once the caches are synced and ErrNotReady before.
func (c *Controller) Ready() error {
	if c.cronsReady.HasSynced() && c.jobsReady.HasSynced() {
		return nil
	}
	return ErrNotReady
}

// Run runs CronJobs until ctx ends, then lets the rounds in progress finish for at
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
	informing.Go(func() { c.informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.cronsReady.HasSynced, c.jobsReady.HasSynced) {
		return nil
	}
	c.log.InfoContext(ctx, "cron job controller started", slog.Int("cronJobs", len(c.informer.GetStore().ListKeys())))
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
		uid, stopped := c.queue.Get()
		if stopped {
			return
		}
		select {
		case <-stop:
		default:
			c.serve(ctx, uid)
		}
		c.queue.Done(uid)
	}
}

// serve runs one round of the CronJob and says when its next one is.
func (c *Controller) serve(ctx context.Context, uid types.UID) {
	s, ok := c.known(uid)
	if !ok {
		c.queue.Forget(uid)
		return
	}
	n, err := c.round(ctx, s)
	if err != nil {
		c.logFailure(ctx, s, err)
		c.queue.AddRateLimited(uid)
		return
	}
	c.queue.Forget(uid)
	switch {
	case n.again:
		c.queue.Add(uid)
	case n.after > 0:
		c.queue.AddAfter(uid, n.after)
	}
}

func (c *Controller) logFailure(ctx context.Context, s *cronState, err error) {
	if errors.Is(err, errNamespaceTerminating) || errors.Is(err, context.Canceled) {
		return
	}
	c.log.WarnContext(ctx, "round of cron job stopped", slog.String("namespace", s.namespace), slog.String("cronJob", s.name),
		slog.String("uid", string(s.uid)), slog.Any("error", err))
}

// until is how long to wait for a time: never nothing (invariant I11), and not so
// long that a clock that is set meanwhile holds runs up.
func (c *Controller) until(at time.Time) time.Duration {
	return min(max(at.Sub(c.cfg.Now()), time.Millisecond), maxWait)
}
