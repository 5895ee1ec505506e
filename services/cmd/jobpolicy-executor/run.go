package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/leaderelection"
	"jobpolicy.dev/executor/shadow"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/gauges"
	"jobpolicy.dev/services/internal/buildinfo"
	"jobpolicy.dev/services/internal/kubeclient"
	"jobpolicy.dev/services/internal/probes"
	"jobpolicy.dev/services/internal/telemetry"
	"jobpolicy.dev/services/internal/views"
)

const (
	// flushTimeout bounds sending the last traces.
	flushTimeout = 5 * time.Second
	// decisionMargin is how much longer than --engine-timeout the executor waits, so that
	// it gets the engine client's error and not its own.
	decisionMargin = 5 * time.Second
)

var errEndedEarly = errors.New("executor ended without being asked to")

// run manages Jobs until the context is done, then drains.
func run(ctx context.Context, o *options, log *slog.Logger) (err error) {
	kubeclient.RouteLogs(log)
	tracing, err := telemetry.StartTracing(ctx, service(), log)
	if err != nil {
		return err
	}
	// A process that has lost the lease must end before another replica acts.
	defer func() {
		if !errors.Is(err, leaderelection.ErrLost) {
			err = errors.Join(err, within(flushTimeout, tracing.Shutdown))
		}
	}()
	tracing.SetGlobal()

	registry, err := newRegistry()
	if err != nil {
		return err
	}
	api, err := o.kube.Config(name + "/" + buildinfo.Version())
	if err != nil {
		return err
	}
	seen := executor.Telemetry{Registerer: registry, Logger: log, TracerProvider: tracing.Provider}
	report, err := o.mode.newReport(api, seen)
	if err != nil {
		return err
	}
	election, err := o.newElection(api, registry, log)
	if err != nil {
		return err
	}
	var all *controllers
	alive := newLiveness(&all, election, log)
	server, client, err := o.newClients(api, alive, registry, log)
	if err != nil {
		return err
	}
	engine, err := o.engine.newEngine(o.needs(), client.secrets, tracing.Provider, registry, log)
	if err != nil {
		return err
	}
	defer engine.close()
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFollowing()
	go engine.follow(following)
	decisions, closeLog, err := o.openLog(ctx, registry, log)
	if err != nil {
		return err
	}
	defer func() { err = closeLog(err) }()
	shared := o.shared(client, seen)
	shared.Decider, shared.DecisionLog = engine.decider, decisions
	jobs, err := o.newExecutor(shared, server, client, report)
	if err != nil {
		return err
	}
	if all, err = o.newControllers(client, jobs, shared, report); err != nil {
		return err
	}
	all.server = server
	work, ready := lead(election, all, alive)
	go alive.Run(following)
	go server.Run(following, client.Discovery())
	checks := []probes.Check{ready, {Name: "api-server", Run: server.Ready, Note: server.Note}, engine.check, engine.certificate, all.second}
	all.pages["GET "+views.PagePath] = views.Page(views.PageConfig{Jobs: jobs, CronJobs: all.crons, Gatherer: registry, Checks: checks})
	web := probes.New(probes.Config{
		Gatherer: registry, Logger: log, Profiling: o.profiling, Ready: checks, Alive: []probes.Check{alive.Check()}, Debug: all.pages,
	})
	return serve(ctx, o, work, web, log)
}

func newRegistry() (*prometheus.Registry, error) {
	r := telemetry.NewRegistry(service())
	return r, kubeclient.RegisterMetrics(r)
}

// stallTimeout is probes.WatchConfig.StallTimeout. A test sets it; 0: the default.
var stallTimeout time.Duration

// newLiveness returns the watch of the controllers that all will point to.
func newLiveness(all **controllers, election *leaderelection.Election, log *slog.Logger) *probes.Watch {
	return probes.NewWatch(probes.WatchConfig{
		Queues: func() []probes.QueueLoad { return (*all).queues() }, Ready: func() error { return (*all).ready() },
		QueueLabel: executor.QueueLabel, Holds: holds(election), Logger: log, StallTimeout: stallTimeout, Period: stallTimeout / 10,
	})
}

// newElection returns nil if there is no leader election. Shadow mode needs no lease,
// because it writes nothing.
func (o *options) newElection(api *rest.Config, r prometheus.Registerer, log *slog.Logger) (*leaderelection.Election, error) {
	if o.mode.shadow() {
		return nil, nil
	}
	return o.election.newElection(api, r, log)
}

// service is the name and version in traces and metrics.
func service() telemetry.Service {
	return telemetry.Service{Name: name, Version: buildinfo.Version()}
}

// within calls end, which sends the rest of something, with a time limit.
func within(limit time.Duration, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return end(ctx)
}

// clients are the controllers' clients of the API server.
type clients struct {
	*kubeclient.Client
	events  typedcorev1.EventsGetter
	secrets kubernetes.Interface
}

func (o *options) newClients(api *rest.Config, alive *probes.Watch, r prometheus.Registerer, log *slog.Logger) (*executor.APIServer, *clients, error) {
	server, err := executor.NewAPIServer(executor.APIServerConfig{
		Gangs: o.jobs.gates.workloadWithJob, TypesMinor: executor.TypesMinor(), Registerer: r, Logger: log,
	})
	if err != nil {
		return nil, nil, err
	}
	wrapped := rest.CopyConfig(api)
	wrapped.Wrap(alive.CountRequests)
	wrapped.Wrap(server.Transport)
	client, err := kubeclient.New(wrapped)
	if err != nil {
		return nil, nil, err
	}
	events, err := kubeclient.NewForEvents(api)
	if err != nil {
		return nil, nil, err
	}
	secrets, err := kubeclient.NewForSecrets(api)
	if err != nil {
		return nil, nil, err
	}
	return server, &clients{client, events, secrets}, nil
}

// shared is the part of the configuration that all controllers have.
func (o *options) shared(client *clients, t executor.Telemetry) executor.Common {
	return executor.Common{
		Client: client, Events: client.events, ManagedBy: o.jobs.managedBy, ReplaceBuiltin: o.jobs.replaceBuiltin,
		Namespaces:      o.controllers.namespaces,
		DecisionTimeout: o.engine.timeout + decisionMargin, DrainPeriod: o.shutdownTimeout, Telemetry: t,
	}
}

// wrapDecider is set by a test.
var wrapDecider func(executor.Decider) executor.Decider

func (o *options) newExecutor(shared executor.Common, server *executor.APIServer, client *clients, report *shadow.Report) (*executor.Executor, error) {
	shared.Workers = o.jobs.concurrentSyncs
	if wrapDecider != nil {
		shared.Decider = wrapDecider(shared.Decider)
	}
	bounds, err := o.jobs.policyBounds()
	if err != nil {
		return nil, err // Validate has said so.
	}
	groups, err := o.controllers.clusterGroups()
	if err != nil {
		return nil, err // Likewise.
	}
	cfg := executor.Config{
		Common: shared, APIServer: server, JobPolicies: client.Dynamic, PolicyBounds: bounds, ClusterGroups: groups,
		Shadow: report,
		Writes: executor.WriteLimits{PerJob: jobWrites(o.kube.QPS), Alone: loneJobWrites(o.kube.QPS)},
		Settings: &jobpolicyv1.Settings{
			PodFailureBackoff:      durationpb.New(o.jobs.podFailureBackoff),
			MaxPodFailureBackoff:   durationpb.New(o.jobs.maxPodFailureBackoff),
			MaxPodChanges:          int32(o.jobs.maxPodChanges),
			MaxUncountedPods:       int32(o.jobs.maxUncountedPods),
			KeepStartTimeOnSuspend: o.jobs.gates.keepStartTimeOnSuspend,
			PodGroups:              o.jobs.podGroups(),
		},
		MaxUnseenPods:   o.jobs.maxUnseenPods,
		SyncBatchPeriod: o.jobs.syncBatchPeriod,
		FieldManager:    name, // The user agent begins with it.
		StandDown:       o.jobs.onSecondController == secondStandDown,
	}
	o.controllers.configure(&cfg, client.Clock.Now)
	jobs, err := executor.New(cfg)
	if err != nil {
		return nil, err
	}
	return jobs, errors.Join(gauges.RegisterJobs(shared.Registerer, jobs, jobs), gauges.RegisterCronJobs(shared.Registerer, jobs))
}

// jobWrites is how many writes one Job may have in flight. Writes that wait for the
// client's rate limit delay those of other Jobs behind them. So a Job has just enough to
// use the whole limit: the writes that start in the 100 ms that an answer may take, and
// one or two more that wait.
func jobWrites(qps float32) int {
	return int(min(executor.DefaultJobWrites, 2+qps/10))
}

// loneJobWrites is how many writes a Job may have in flight while no other Job has any. If
// the rate limit is the bottleneck, it is no more than jobWrites: more writes would only
// delay those of the next Job.
func loneJobWrites(qps float32) int {
	if n := jobWrites(qps); n < executor.DefaultJobWrites {
		return n
	}
	return executor.DefaultLoneJobWrites
}

// lead returns the function that runs all controllers, under leader election if there is
// one, and the check that their caches are filled.
func lead(election *leaderelection.Election, all *controllers, alive *probes.Watch) (func(context.Context) error, probes.Check) {
	caches, run := all.caches(), alive.Lead(all.Run)
	if election == nil {
		return run, caches
	}
	// A replica that stands by is ready, whether its caches are filled or not.
	caches.Idle = func() (string, bool) {
		leader, standby := election.Standby()
		return "standing by, " + leader + " leads", standby
	}
	return func(ctx context.Context) error {
		if all.standBy != nil {
			// The pod cache must run until the last reconciles have ended.
			standing, stop := context.WithCancel(context.WithoutCancel(ctx))
			defer stop()
			all.standBy(standing, func(f func()) { go f() })
		}
		return election.Run(ctx, run)
	}, caches
}

// serve works until the context is done. /readyz fails before the work ends.
func serve(ctx context.Context, o *options, work func(context.Context) error, web *probes.Server, log *slog.Logger) error {
	group, serving := errgroup.WithContext(ctx)
	var httpAddress string
	if o.httpAddress != "" {
		lis, err := net.Listen("tcp", o.httpAddress)
		if err != nil {
			return fmt.Errorf("--http-address: %w", err)
		}
		httpAddress = lis.Addr().String()
		group.Go(func() error { return web.Serve(lis) })
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	group.Go(func() error {
		defer close(ended)
		if err := work(working); err != nil || working.Err() != nil {
			return err
		}
		return errEndedEarly
	})
	group.Go(func() error {
		<-serving.Done()
		log.Info("service draining", "timeout", o.shutdownTimeout)
		web.Drain()
		stop()
		<-ended
		web.Close()
		log.Info("service stopped")
		return nil
	})
	log.Info("service started", "version", service().Version, "mode", o.mode.mode, "http", httpAddress, "engine", o.engine.target,
		"managedBy", o.jobs.managedBy, "replaceBuiltin", o.jobs.replaceBuiltin, "leaderElection", o.election.enabled && !o.mode.shadow())
	return group.Wait()
}
