package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/delayqueue"
	"jobpolicy.dev/executor/events"
	"jobpolicy.dev/executor/gang"
	"jobpolicy.dev/executor/limit"
	"jobpolicy.dev/executor/metrics"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/semaphore"
	"jobpolicy.dev/executor/telemetry"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	// orphanIndex finds pods without a controller by namespace.
	orphanIndex = "orphans"
	// eventComponent is the source of events: the upstream controller's, so that
	// whoever filters by it keeps seeing them.
	eventComponent = "job-controller"
	orphanWorkers  = 4
)

var (
	// ErrNotReady says that the caches are not filled yet.
	ErrNotReady = errors.New("caches are not synced")
	// ErrStarted says that Run was called before; an Executor runs once.
	ErrStarted = errors.New("executor was started before")
)

// Executor carries out decisions about Jobs. It is made by New and run once.
type Executor struct {
	cfg      Config
	settings *jobpolicyv1.Settings
	log      *slog.Logger
	api      *api.Client
	tracer   telemetry.Tracer
	metrics  *jobMetrics
	engine   engineHealth

	jobInformer, podInformer cache.SharedIndexInformer
	jobsReady, podsReady     cache.ResourceEventHandlerRegistration
	gangs                    *gang.Gangs // nil without Config.WorkloadWithJob.

	jobs    *jobs
	queue   workqueue.TypedDelayingInterface[types.UID]
	orphans orphanQueue

	judging chan struct{} // Slots for rounds that are being judged.
	// writes bounds API writes, and open the Jobs that are at work, by namespace: a
	// webhook that hangs on the pods of one must not keep the others waiting.
	writes *limit.Pool
	open   *semaphore.Semaphore
	rounds sync.WaitGroup

	broadcaster *events.Broadcaster
	recorder    record.EventRecorder

	started atomic.Bool
	synced  atomic.Bool
}

// New checks the configuration (ErrConfig) and registers the metrics. Nothing
// runs before Run.
func New(cfg Config) (*Executor, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	own, err := newJobMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	e := &Executor{
		cfg:      cfg,
		settings: cfg.settings(),
		log:      cfg.Logger,
		tracer:   telemetry.NewTracer(cfg.TracerProvider, telemetry.TracerName),
		metrics:  own,
		judging:  make(chan struct{}, cfg.Workers),
		writes:   limit.NewPool(limit.Config{Total: cfg.MaxWrites, PerJob: cfg.MaxJobWrites, Alone: cfg.LoneJobWrites}),
		open:     semaphore.New(maxOpenRounds),
	}
	e.jobs = newJobs(e.writes)
	e.queue = delayqueue.New[types.UID](e.metrics.shared.QueueName(metrics.JobQueue), e.metrics.shared.Queues)
	e.orphans = newOrphanQueue(cfg.APIBackoff, cfg.MaxAPIBackoff, e.metrics.shared)
	if e.broadcaster, err = events.New(cfg.eventConfig()); err != nil {
		return nil, err
	}
	e.recorder = e.broadcaster
	e.api = &api.Client{Kubernetes: cfg.Client, Tracer: e.tracer, Now: cfg.Now}
	if err := e.buildInformers(); err != nil {
		return nil, err
	}
	return e, nil
}

// buildInformers makes the informers of this Executor alone: their transforms
// would surprise anybody else.
func (e *Executor) buildInformers() error {
	e.jobInformer = batchinformers.NewFilteredJobInformer(e.cfg.Client, metav1.NamespaceAll, e.cfg.Resync, cache.Indexers{}, api.ConsistentList)
	e.podInformer = coreinformers.NewFilteredPodInformer(e.cfg.Client, metav1.NamespaceAll, 0,
		cache.Indexers{orphanIndex: indexOrphans}, api.ConsistentList)
	if err := e.jobInformer.SetTransform(trimJobObject); err != nil {
		return fmt.Errorf("job transform: %w", err)
	}
	if err := e.podInformer.SetTransform(keepLean); err != nil {
		return fmt.Errorf("pod transform: %w", err)
	}
	var err error
	if e.cfg.WorkloadWithJob {
		e.gangs, err = gang.New(gang.Config{Client: e.cfg.Client, Recorder: e.recorder, Tracer: e.tracer, Logger: e.log})
		if err != nil {
			return err
		}
	}
	if e.jobsReady, err = e.jobInformer.AddEventHandler(e.jobHandler()); err != nil {
		return fmt.Errorf("job handler: %w", err)
	}
	if e.podsReady, err = e.podInformer.AddEventHandler(e.podHandler()); err != nil {
		return fmt.Errorf("pod handler: %w", err)
	}
	return nil
}

func indexOrphans(obj any) ([]string, error) {
	pod, ok := obj.(*podcache.Pod)
	if !ok || pod.Controlled() {
		return nil, nil
	}
	return []string{pod.Namespace()}, nil
}

// Ready is nil once the caches are synced and ErrNotReady before.
func (e *Executor) Ready() error {
	if !e.synced.Load() {
		return ErrNotReady
	}
	return nil
}

// Jobs is the informer of all Jobs, which Run runs. Others may attach themselves
// to it before; they must not change what they get from it.
func (e *Executor) Jobs() cache.SharedIndexInformer { return e.jobInformer }

func (e *Executor) podsSynced() bool { return e.synced.Load() }

// Run manages Jobs until ctx ends, then lets the rounds in progress finish for
// at most Config.DrainPeriod, and returns nil. It can be called once.
func (e *Executor) Run(ctx context.Context) error {
	if e.started.Swap(true) {
		return ErrStarted
	}
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer e.queue.ShutDown()
	defer e.orphans.ShutDown()
	e.broadcaster.Start(work)
	defer e.broadcaster.Shutdown()
	informing, stopInforming := context.WithCancel(work)
	var informers sync.WaitGroup
	defer informers.Wait()
	defer stopInforming()

	if !e.sync(ctx, informing, &informers) {
		return nil
	}
	e.log.InfoContext(ctx, "executor started", slog.Int("jobs", len(e.jobs.all())), slog.Bool("replaceBuiltin", e.cfg.ReplaceBuiltin))
	var workers sync.WaitGroup
	seen := e.readClocks()
	workers.Go(func() { e.lookAround(ctx, seen) })
	workers.Go(func() { e.dispatch(ctx.Done(), work) })
	for range orphanWorkers {
		workers.Go(func() { e.orphanWorker(work) })
	}
	<-ctx.Done()
	e.drain(&workers, work, abandon)
	e.log.InfoContext(work, "executor stopped")
	return nil
}

// sync fills the caches: the Jobs' first, so that what is known of pods is
// never older than the statuses that were read at the start. false: ctx ended
// before.
func (e *Executor) sync(ctx, informing context.Context, informers *sync.WaitGroup) bool {
	informers.Go(func() { e.jobInformer.RunWithContext(informing) })
	if !cache.WaitForCacheSync(ctx.Done(), e.jobsReady.HasSynced) {
		return false
	}
	informers.Go(func() { e.podInformer.RunWithContext(informing) })
	if !cache.WaitForCacheSync(ctx.Done(), e.podsReady.HasSynced) {
		return false
	}
	var synced []cache.InformerSynced
	for _, informer := range e.gangs.Informers() {
		informers.Go(func() { informer.RunWithContext(informing) })
		synced = append(synced, informer.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return false
	}
	e.synced.Store(true)
	return true
}

// drain stops taking work and waits for what is in progress, and then for the
// events of it.
func (e *Executor) drain(workers *sync.WaitGroup, work context.Context, abandon context.CancelFunc) {
	e.queue.ShutDown()
	e.orphans.ShutDown()
	patience := time.AfterFunc(e.cfg.DrainPeriod, abandon)
	defer patience.Stop()
	workers.Wait()
	e.rounds.Wait()
	e.broadcaster.Drain(work)
}
