package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/leaderelection"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
	"jobpolicy.dev/test/simulated/parity/virtual"
)

// The lease that the active executor holds.
const leaseNamespace, leaseName = "kube-system", "executor"

// executorName is the prefix of executors' names. Each process has its own name.
const executorName = "executor-"

func isExecutor(by string) bool { return strings.HasPrefix(by, executorName) }

// A fleet is the executors: those that run, and those that are dead.
type fleet struct {
	w *world

	mu      sync.Mutex
	started int
	running []*process

	ended sync.WaitGroup
	// skew is how far the executors' clocks are ahead of the world's clock.
	skew atomic.Int64
}

// A process is one executor.
type process struct {
	name string
	link *link
	stop context.CancelFunc
	// metrics are those of an executor; nil for what stands in for one.
	metrics prometheus.Gatherer
}

func (f *fleet) now() time.Time { return time.Now().Add(time.Duration(f.skew.Load())) }

// start starts an executor.
func (f *fleet) start() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started++
	name := fmt.Sprintf("%s%d", executorName, f.started)
	p := &process{name: name, link: f.w.network.link(name, f.w.server.Transport(name))}
	run, err := f.build(p)
	if err != nil {
		return err
	}
	f.w.note(name, "starts")
	f.w.judge.hindered("", time.Now(), begins)
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	f.running = append(f.running, p)
	f.ended.Go(func() { f.see(p, run(ctx)) })
	return nil
}

// see handles the end of a process. A process that lost its lease ends, and is started
// again.
func (f *fleet) see(p *process, err error) {
	if err == nil || p.link.isDown() {
		return
	}
	if !errors.Is(err, leaderelection.ErrLost) {
		f.w.broken("run", fmt.Sprintf("%s ended: %v", p.name, err))
		return
	}
	f.w.note(p.name, "has lost the lease")
	f.bury(p)
	f.w.after(restartTime, func() {
		if err := f.start(); err != nil {
			f.w.broken("run", err.Error())
		}
	})
}

// restartTime is the time until a process that ended by itself is started again.
const restartTime = time.Second

// bury ends a process at once.
func (f *fleet) bury(p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = slices.DeleteFunc(f.running, func(other *process) bool { return other == p })
	p.link.cut()
	p.stop()
	f.w.judge.died(p.name)
}

// build makes an executor as its program does.
func (f *fleet) build(p *process) (func(context.Context) error, error) {
	settings := f.w.plan.executor
	if settings.podjob {
		made, err := f.podjobs(p)
		return f.began(p, made), err
	}
	if settings.upstream {
		return f.began(p, upstream{virtual.Config(p.link)}), nil
	}
	log := slog.New(&logHandler{w: f.w, by: p.name})
	if !settings.elected() {
		e, err := f.executor(p, p.link, log)
		return f.began(p, e), err
	}
	// Executors check their leases every few seconds, which takes much real time in a
	// world of an hour. So the lease times are eight times as long as usual.
	lease, err := newClient(p.link, clientOptions{})
	if err != nil {
		return nil, err
	}
	election, err := leaderelection.New(leaderelection.Config{
		Client: lease.CoordinationV1(), Namespace: leaseNamespace, Name: leaseName, Identity: p.name,
		LeaseDuration: 120 * time.Second, RenewDeadline: 80 * time.Second, RetryPeriod: 16 * time.Second, StandbyPeriod: 10 * time.Second, Now: f.now, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	e, err := f.executor(p, election.Fence()(p.link), log)
	if err != nil {
		return nil, err
	}
	run := f.began(p, e)
	return func(ctx context.Context) error {
		if settings.warmStandby {
			var warm sync.WaitGroup
			standing, stop := context.WithCancel(ctx)
			defer warm.Wait()
			defer stop()
			e.StandBy(standing, warm.Go)
		}
		var led atomic.Bool
		err := election.Run(ctx, func(ctx context.Context) error {
			led.Store(true)
			return run(ctx)
		})
		if !led.Load() {
			p.stop()
			_ = run(ctx) // Something that never ran ends.
		}
		return err
	}, nil
}

// executor makes an executor with all controllers.
func (f *fleet) executor(p *process, transport http.RoundTripper, log *slog.Logger) (*executor.Executor, error) {
	settings := f.w.plan.executor
	c, err := newClient(transport, clientOptions{lean: true, qps: settings.qps})
	if err != nil {
		return nil, err
	}
	shared := executor.Common{
		Decider: decider{p.link}, Client: c, ManagedBy: executor.ManagedBy, ReplaceBuiltin: settings.replace, DrainPeriod: time.Second, Now: f.now, Workers: settings.workers,
		Telemetry: executor.Telemetry{Logger: log, TracerProvider: newSettler(f.w.plan.seed)},
	}
	manager := ""
	if settings.noticing {
		manager = executorManager
	}
	cfg := executor.Config{
		Common: shared, FieldManager: manager, StandDown: settings.standDown,
		Settings: settings.asked(),
		Writes:   executor.WriteLimits{Total: settings.maxWrites},
		Rows:     executor.RowLimits{Max: settings.maxRows, Least: settings.leastRows}, MissedReconcilesReportOnly: true, MaxUnseenPods: settings.maxUnseen,
		CronJobs:     &executor.CronJobs{Workers: settings.workers, TimeZone: settings.zone},
		FinishedJobs: &executor.FinishedJobs{Workers: settings.workers, ServerNow: c.serverNow},
	}
	if settings.clusterRuns > 0 {
		cfg.ClusterGroups = options.ClusterGroups{cronGroup: int32(settings.clusterRuns)}
		if cfg.JobPolicies, err = newUnserved(); err != nil {
			return nil, err
		}
	}
	e, err := executor.New(cfg)
	if err != nil {
		return nil, err
	}
	p.metrics, err = metricsOf(e)
	return e, err
}

// asked are the settings of each question about a Job.
func (e executorPlan) asked() *jobpolicyv1.Settings {
	return &jobpolicyv1.Settings{
		MaxPodChanges: int32(e.maxChanges), MaxUncountedPods: int32(e.maxUncounted), KeepStartTimeOnSuspend: e.keepStartTime,
	}
}

// began returns the Run of an executor, or of what stands in for it. It tells the judge that it begins.
func (f *fleet) began(p *process, e interface{ Run(context.Context) error }) func(context.Context) error {
	return func(ctx context.Context) error {
		if ctx.Err() == nil {
			f.w.judge.began(p.name, time.Now())
		}
		return e.Run(ctx)
	}
}

// kill cuts an executor off from everything, at once and for ever.
func (f *fleet) kill(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.running) == 0 {
		return false
	}
	n %= len(f.running)
	p := f.running[n]
	f.running = append(f.running[:n:n], f.running[n+1:]...)
	p.link.cut()
	f.w.note(p.name, "is killed")
	f.w.judge.died(p.name)
	p.stop() // Nobody sees what it does from now on.
	return true
}

// cutNow cuts off the executor that is about to be killed. The API server may be in the
// middle of one of its writes.
func (f *fleet) cutNow(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.running) > 0 {
		f.running[n%len(f.running)].link.cut()
	}
}

// leader is the executor that holds the lease, or the n-th one if none does.
func (f *fleet) leader(n int) *process {
	holder := ""
	if obj, ok := f.w.server.Get("leases", types.NamespacedName{Namespace: leaseNamespace, Name: leaseName}); ok {
		if lease, ok := obj.(*coordinationv1.Lease); ok {
			holder = valueOr(lease.Spec.HolderIdentity, "")
		}
	}
	if p := f.named(holder); p != nil {
		return p
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.running) == 0 {
		return nil
	}
	return f.running[n%len(f.running)]
}

// named is the process of a name if it runs.
func (f *fleet) named(name string) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.running {
		if p.name == name {
			return p
		}
	}
	return nil
}

// names are those of all executors that ever ran.
func (f *fleet) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for n := range f.started {
		out = append(out, fmt.Sprint(executorName, n+1))
	}
	return out
}

// alive are the names of the executors that run.
func (f *fleet) alive() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, p := range f.running {
		out = append(out, p.name)
	}
	return out
}

// stop ends all executors and waits until they have.
func (f *fleet) stop() {
	for _, p := range f.running {
		p.stop()
	}
	f.ended.Wait()
	for _, p := range f.running {
		p.link.cut()
	}
}
