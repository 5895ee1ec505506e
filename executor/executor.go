package executor

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/events"
	"jobpolicy.dev/executor/internal/gang"
	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/internal/nodes"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// eventComponent is the source component of events. It is the built-in controller's, so
// that filters by component keep working.
const eventComponent = "job-controller"

// Executor carries out decisions about Jobs. It is made by New and run once.
type Executor struct {
	group // The controller of Jobs, and those of CronJobs and of finished Jobs.

	base     *controller.Controller
	jobs     *tracker.Jobs
	informer *controller.Informers // of Jobs
	gangs    *gang.Gangs           // nil without Settings.PodGroups.
	second   *secondController     // nil in shadow mode.

	podWatch   *podWatch
	decider    *decider
	reconciler *reconciler // nil in shadow mode.
	queue      jobQueue
	watcher    *watcher
}

// New checks the configuration (ErrConfig) and registers the metrics. No reconcile and no call of
// the API server happens before Run or StandBy; goroutines of the queues end with Run.
func New(cfg Config) (*Executor, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	shared := cfg.Common
	base, err := controller.New(shared, controller.Identity{
		Component: eventComponent, Scope: telemetry.TracerName, EventLimits: events.LimitByReason(),
	})
	if err != nil {
		return nil, err
	}
	cfg.Common = base.Config
	cfg.setDefaults()
	var comparer *shadow.Comparer
	if cfg.Shadow != nil {
		comparer = cfg.Shadow.OnlyCompare(base, shadow.TypeJob)
		cfg.Common = base.Config
		cfg.Settings.PodGroups = jobpolicyv1.PodGroups_POD_GROUPS_UNSPECIFIED
	}
	own, err := newJobMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	e := &Executor{base: base, group: group{parts: []part{base}}}
	client := base.API()
	if comparer == nil {
		e.second, err = newSecondController(secondControllerConfig{
			FieldManager: cfg.FieldManager, StandDown: cfg.StandDown, Recorder: base.Recorder, Registerer: cfg.Registerer, Logger: cfg.Logger,
		})
		if err != nil {
			return nil, err
		}
	}
	if cfg.Settings.GetPodGroups() != jobpolicyv1.PodGroups_POD_GROUPS_UNSPECIFIED {
		e.gangs, err = gang.New(gang.Config{API: client, Server: cfg.APIServer, Namespaces: cfg.Namespaces, Recorder: base.Recorder, Logger: cfg.Logger})
		if err != nil {
			return nil, err
		}
	}
	pods, err := controller.NewPodInformers(cfg.Client, cfg.Namespaces, api.ConsistentList)
	if err != nil {
		return nil, err
	}
	if e.informer, err = newJobInformer(&cfg, e.trim); err != nil {
		return nil, err
	}
	if err := e.addPolicies(&cfg); err != nil {
		return nil, err
	}
	known := nodes.New(cfg.Client, cfg.Logger, func(name string) { e.watcher.nodeChanged(name) })
	e.build(&cfg, own, client, pods, comparer)
	e.decider.nodes = known
	base.AddTask(known.Run)
	if err := e.policies.Follow(e.informer, func(obj any) { e.watcher.policyChanged(obj.(*batchv1.Job)) }); err != nil {
		return nil, err
	}
	if err := e.watchWorkloads(); err != nil {
		return nil, err
	}
	if err := e.addCaches(); err != nil {
		return nil, err
	}
	return e, e.addBesideJobs(&cfg, shared, e.informer, e.refusals)
}

// build makes the parts. In shadow mode, which has a comparer, a jobComparer takes the place of
// the reconciler, and nothing that could write is made.
func (e *Executor) build(cfg *Config, own *jobMetrics, client *api.Client, pods controller.PodInformers, comparer *shadow.Comparer) {
	scope, writes := cfg.Scope(), limit.NewPool(cfg.Writes)
	report := &reporter{base: e.base, metrics: own}
	e.jobs = tracker.NewJobs(writes)
	e.podWatch = newPodWatch(pods, e.informer, cfg.Logger)
	e.decider = &decider{
		base: e.base, cfg: cfg, metrics: own.decisions, report: report, policies: e.policies, slots: make(chan struct{}, cfg.Workers),
	}
	var reconcile reconcileFunc
	var orphans *orphanReleaser // nil in shadow mode.
	if comparer != nil {
		reconcile = (&jobComparer{scope: scope, jobs: e.jobs, decider: e.decider, comparer: comparer}).compare
	} else {
		calls := func(s *tracker.Job) *api.Pods {
			return client.Pods(s, s.PodEvents.Recorder(e.base.Recorder))
		}
		orphans = newOrphanReleaser(e.base, orphanConfig{API: client, Scope: scope, Jobs: e.jobs, Pods: pods, Writes: writes, Calls: calls})
		e.reconciler = &reconciler{
			cfg: cfg, scope: scope, jobs: e.jobs, api: client, calls: calls, writes: writes, decider: e.decider, report: report, second: e.second,
			podWatch: e.podWatch,
			applier:  &applier{base: e.base, cfg: cfg, api: client, gangs: e.gangs, report: report},
		}
		reconcile = e.reconciler.Reconcile
	}
	e.queue = newJobQueue(e.base, cfg, e.jobs, scope, writes, reconcile)
	e.watcher = &watcher{
		scope: scope, jobs: e.jobs, queue: e.queue, orphans: orphans, report: report, statusPeriod: cfg.StatusPeriod, ready: e.base.Ready,
		second: e.second, podWatch: e.podWatch, comparer: comparer,
	}
	if comparer == nil {
		e.base.AddTask(newMissedReconciles(scope, e.jobs, e.queue, e.decider, e.second, e.podWatch).run)
		if e.policies != nil {
			e.base.AddTask(e.policies.WriteStatuses)
		}
	}
}

// addCaches adds the caches in the order in which they are filled: Jobs first, then pods.
// So what is known of the pods is never older than the Job statuses that were read at the
// start.
func (e *Executor) addCaches() error {
	jobsSeen, err := e.informer.AddOrderedEventHandler(e.watcher.jobHandler())
	if err != nil {
		return fmt.Errorf("job handler: %w", err)
	}
	e.base.AddCache(e.informer.Run, jobsSeen)
	e.base.AddCache(func(ctx context.Context) { e.podWatch.run(ctx, e.watcher.podHandler()) }, e.podWatch.synced)
	if e.gangs != nil {
		e.base.AddCache(e.gangs.Run, e.gangs.Settled)
	}
	if e.policies != nil {
		e.base.AddCache(e.policies.Run, e.policies.Settled)
	}
	return nil
}

// watchWorkloads enqueues the Jobs that wait for a Workload, or follow that of their controller.
func (e *Executor) watchWorkloads() error {
	if e.gangs == nil {
		return nil
	}
	if err := e.informer.AddIndexers(cache.Indexers{gang.DelegatingIndex: gang.ByDelegating}); err != nil {
		return fmt.Errorf("job index: %w", err)
	}
	return e.gangs.OnWorkload(func(delegating, namespace, job string) {
		jobs, _ := e.informer.In(namespace).GetIndexer().ByIndex(gang.DelegatingIndex, delegating)
		if owner, found, _ := e.informer.Get(namespace, job); found {
			jobs = append(jobs, owner)
		}
		for _, job := range jobs {
			e.watcher.workloadSeen(job.(*batchv1.Job))
		}
	})
}

// trim is the transform of the Job informer. It removes only managed fields: creating pods
// needs the rest, with the pod template.
func (e *Executor) trim(obj any) (any, error) {
	if job, ok := obj.(*batchv1.Job); ok {
		e.second.Trim(job)
	}
	return obj, nil
}

// SecondController says in one line whether another controller works on managed Jobs.
func (e *Executor) SecondController() string { return e.second.Note() }
