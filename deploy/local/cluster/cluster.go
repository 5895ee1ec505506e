package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/deploy/local/internal/statedir"
)

// Cluster is a running control plane. Its methods may be called from any
// goroutine.
type Cluster struct {
	*layout
	stages [][]*component

	reportMu sync.Mutex

	failOnce sync.Once
	failed   chan struct{}
	failure  error // written once, before failed is closed

	stopOnce sync.Once
	stopErr  error
}

// Start starts a control plane and waits until Jobs can run on it. When it
// returns an error, or when ctx ends first, nothing is left running; the logs
// stay unless ctx was the reason.
//
// ctx bounds the start only. The control plane runs until Stop, or until the
// calling process ends.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	dir, err := openStateDir(opts)
	if err != nil {
		return nil, err
	}
	l, err := newLayout(opts, dir)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	c := newCluster(l)
	if err := c.start(ctx); err != nil {
		if ctx.Err() == nil {
			c.fail(err)
		}
		stopErr := c.Stop(context.WithoutCancel(ctx))
		return nil, errors.Join(err, stopErr)
	}
	return c, nil
}

func newCluster(l *layout) *Cluster {
	return &Cluster{layout: l, stages: l.layoutStages(), failed: make(chan struct{})}
}

// openStateDir opens the state directory. It returns an error if an earlier run kept its
// state there and this run would delete it.
func openStateDir(opts Options) (*statedir.Dir, error) {
	dir, err := statedir.Open(opts.StateDir)
	if err != nil {
		return nil, err
	}
	if opts.Keep {
		err = dir.Keep()
	}
	if !opts.Keep && dir.Kept() {
		err = fmt.Errorf("state directory %s: an earlier run kept it: continue it by keeping it again, or delete it", dir.Path())
	}
	if err == nil {
		statedir.RemoveAbandoned(os.TempDir())
	}
	if err == nil && opts.Node == Containers {
		err = removeLeftovers(dir)
	}
	if !opts.Keep && err == nil {
		err = dir.Clear()
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// start brings the stages up one after the other, and waits until all of them
// together can run a pod.
func (c *Cluster) start(ctx context.Context) error {
	begin := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer cancelWhenClosed(c.failed, func() { cancel(c.failure) })()

	for _, stage := range c.stages {
		if err := c.startStage(ctx, stage); err != nil {
			return err
		}
	}
	err := poll(ctx, c.opts.StartTimeout, usableProbe(c.client, c.opts), c.reporter(whole, begin))
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	c.report(Progress{Component: whole, State: Ready, Elapsed: time.Since(begin)})
	return nil
}

// startStage starts components together and waits until all are ready, or until
// one has failed.
func (c *Cluster) startStage(ctx context.Context, stage []*component) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, comp := range stage {
		group.Go(func() error { return c.startFirst(ctx, comp) })
	}
	return group.Wait()
}

// startFirst starts a component for the first time: with ports chosen for it,
// again with others when one of them was taken meanwhile.
func (c *Cluster) startFirst(ctx context.Context, comp *component) error {
	comp.mu.Lock()
	defer comp.mu.Unlock()
	var err error
	for range portAttempts {
		if err = c.choosePorts(comp); err != nil {
			return err
		}
		err = c.startComponent(ctx, comp)
		if err == nil || !comp.lostPort() {
			break
		}
	}
	if err != nil || comp.afterFirst == nil {
		return err
	}
	if err := comp.afterFirst(ctx); err != nil {
		return fmt.Errorf("%s: %w", comp.name, err)
	}
	return nil
}

// choosePorts gives comp its ports and writes what depends on them.
func (c *Cluster) choosePorts(comp *component) error {
	if err := c.ports.choose(comp.listeners); err != nil {
		return fmt.Errorf("%s: %w", comp.name, err)
	}
	if err := comp.inside.forward(c.ports, comp.listeners); err != nil {
		return fmt.Errorf("%s: %w", comp.name, err)
	}
	if comp.prepare == nil {
		return nil
	}
	if err := comp.prepare(); err != nil {
		return fmt.Errorf("%s: %w", comp.name, err)
	}
	return nil
}

// startComponent launches comp and waits until it is ready. From then on its
// end is a failure, unless it was told to end. The caller holds comp.mu.
func (c *Cluster) startComponent(ctx context.Context, comp *component) error {
	begin := time.Now()
	c.report(Progress{Component: comp.name, State: Starting})
	r, err := comp.launch()
	if err != nil {
		return err
	}
	if err := comp.await(ctx, r, c.opts.StartTimeout, c.reporter(comp.name, begin)); err != nil {
		return err
	}
	go c.watch(comp, r)
	c.report(Progress{Component: comp.name, State: Ready, Elapsed: time.Since(begin)})
	return nil
}

// watch reports an unexpected end of a component as the cluster's failure.
func (c *Cluster) watch(comp *component, r *run) {
	<-r.proc.Exited()
	if !r.told.Load() {
		c.fail(comp.endError(r))
	}
}

// fail records the first failure.
func (c *Cluster) fail(err error) {
	c.failOnce.Do(func() {
		c.failure = err
		close(c.failed)
	})
}

// Failed is closed when a component has ended without having been told to; Err
// then says which and why.
func (c *Cluster) Failed() <-chan struct{} { return c.failed }

// Err returns the first failure, or nil while there is none.
func (c *Cluster) Err() error {
	select {
	case <-c.failed:
		return c.failure
	default:
		return nil
	}
}

// Wait returns the first failure, or nil when ctx ends before there is one.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case <-c.failed:
	case <-ctx.Done():
	}
	return c.Err()
}

// report passes a step on to the caller, one at a time.
func (c *Cluster) report(p Progress) {
	c.reportMu.Lock()
	defer c.reportMu.Unlock()
	c.opts.Progress(p)
}

// reporter reports steps of one component with the time since begin.
func (c *Cluster) reporter(name string, begin time.Time) func(State, string) {
	return func(state State, detail string) {
		c.report(Progress{Component: name, State: state, Elapsed: time.Since(begin), Detail: detail})
	}
}

// Kubeconfig returns the path of a kubeconfig file with all rights.
func (c *Cluster) Kubeconfig() string { return c.adminKubeconfig() }

// RESTConfig returns a client configuration with all rights and without a limit
// on requests.
func (c *Cluster) RESTConfig() *rest.Config {
	return &rest.Config{
		Host:  c.apiServerURL(),
		QPS:   -1,
		Burst: -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAFile:   c.keys.ClusterCA,
			CertFile: c.keys.Admin.Cert,
			KeyFile:  c.keys.Admin.Key,
		},
	}
}

// client is the admin's, from the kubeconfig file as it is now.
func (l *layout) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.adminKubeconfig())
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// StateDir returns the absolute path of the state directory.
func (c *Cluster) StateDir() string { return c.dir.Path() }

// LogPath returns the path of a component's log file.
func (c *Cluster) LogPath(component string) string { return c.logFile(component) }

// EngineAddress returns the host:port of the policy engine's gRPC service.
func (c *Cluster) EngineAddress() string { return c.ports.address(portEngineGRPC) }

// EngineURL returns the base of the policy engine's HTTP endpoints /healthz,
// /readyz and /metrics, without a slash at its end.
func (c *Cluster) EngineURL() string { return "http://" + c.ports.address(portEngineHTTP) }

// ExecutorURL returns the base of the executor's HTTP endpoints /healthz,
// /readyz, /metrics and /debug/decisions, without a slash at its end.
func (c *Cluster) ExecutorURL() string { return "http://" + c.ports.address(portExecutorHTTP) }

// ControllerManagerURL returns the base of the controller manager's HTTPS
// endpoints, /metrics among them, without a slash at its end. The certificates
// of RESTConfig open it.
func (c *Cluster) ControllerManagerURL() string {
	return "https://" + c.ports.address(portControllerManager)
}

// EngineKeys names the PEM files with which a caller of the policy engine
// proves itself, and recognizes the engine.
type EngineKeys struct {
	CAFile, CertFile, KeyFile string
}

// EnginePKI returns the files for a caller of the policy engine.
func (c *Cluster) EnginePKI() EngineKeys {
	return EngineKeys{
		CAFile:   c.keys.EngineCA,
		CertFile: c.keys.EngineClient.Cert,
		KeyFile:  c.keys.EngineClient.Key,
	}
}
