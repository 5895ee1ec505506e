package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
)

// Names of the contenders.
const (
	BuiltIn  = "built-in"
	Services = "two services"
	Embedded = "embedded"
	Floor    = "floor"
)

const (
	// unlimited stands for no limit on a client's requests per second.
	unlimited = 1_000_000
	// limitedBurst is how many requests may be sent at once under a limit. It is
	// small, so that what was saved up at the start does not count.
	limitedBurst = 10
	// jobSyncs is how many Jobs each controller works on at once: upstream's
	// default, and the executor's.
	jobSyncs = 5
)

// A contender is a controller that is compared.
type contender struct {
	name string
	// start starts its processes with a kubeconfig file, for a scenario.
	start func(ctx context.Context, p *plane, kubeconfig string, s *Scenario) (*processes, error)
	// writesStatus is false for the floor: Jobs under it never end.
	writesStatus bool
	// ours is true for this project's controllers.
	ours bool
}

func contenders() []contender {
	return []contender{
		{name: BuiltIn, start: startBuiltIn, writesStatus: true},
		{name: Services, start: startServices, writesStatus: true, ours: true},
		{name: Embedded, start: startEmbedded, writesStatus: true, ours: true},
		{name: Floor, start: startFloor},
	}
}

// processes are those of a contender while it runs.
type processes struct {
	own []*process
	// engine is the process id of the policy engine when that is a component of
	// the control plane; 0 otherwise.
	engine     int
	stopEngine func() error
	// metrics are where its metrics are served, and profiles where profiles are,
	// by program.
	metrics  []string
	profiles map[string]string
}

// limits are the flags for a client's rate limit, which all contenders have.
func limits(qps int) []string {
	burst := limitedBurst
	if qps == 0 {
		qps, burst = unlimited, unlimited
	}
	return []string{fmt.Sprintf("--kube-api-qps=%d", qps), fmt.Sprintf("--kube-api-burst=%d", burst)}
}

func startBuiltIn(_ context.Context, p *plane, kubeconfig string, s *Scenario) (*processes, error) {
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	args := append([]string{"kube-controller-manager"}, limits(s.QPS)...)
	args = append(args, "--kubeconfig="+kubeconfig, "--controllers=job-controller",
		"--leader-elect=false", "--use-service-account-credentials=false", fmt.Sprintf("--concurrent-job-syncs=%d", jobSyncs),
		"--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir=", "--authorization-always-allow-paths=/healthz,/metrics,/debug/pprof/*")
	return launch(kubeconfig, filepath.Join(p.binaries, cluster.LocalBinary), "https://"+address, "/healthz", args)
}

func startServices(ctx context.Context, p *plane, kubeconfig string, s *Scenario) (*processes, error) {
	if err := p.StartComponent(ctx, cluster.Engine); err != nil {
		return nil, err
	}
	keys := p.EnginePKI()
	c, err := startExecutor(p, kubeconfig, s, "--engine="+p.EngineAddress(), "--engine-server-name=localhost",
		"--engine-ca-file="+keys.CAFile, "--engine-cert-file="+keys.CertFile, "--engine-key-file="+keys.KeyFile)
	if err != nil {
		return nil, errors.Join(err, p.Kill(cluster.Engine))
	}
	c.metrics = append(c.metrics, p.EngineURL()+"/metrics")
	c.profiles[cluster.EngineBinary] = p.EngineURL() + profilePath
	c.stopEngine = func() error {
		_, err := p.StopComponent(context.WithoutCancel(ctx), cluster.Engine)
		return err
	}
	c.engine, err = p.PID(cluster.Engine)
	return c, err
}

func startEmbedded(_ context.Context, p *plane, kubeconfig string, s *Scenario) (*processes, error) {
	return startExecutor(p, kubeconfig, s, "--engine=embedded")
}

func startExecutor(p *plane, kubeconfig string, s *Scenario, engine ...string) (*processes, error) {
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	args := append(limits(s.QPS), "--kubeconfig="+kubeconfig, "--controllers=job-controller",
		"--replace-builtin", "--leader-elect=false",
		fmt.Sprintf("--concurrent-job-syncs=%d", jobSyncs), "--http-address="+address, "--profiling")
	return launch(kubeconfig, filepath.Join(p.binaries, cluster.ExecutorBinary), "http://"+address, "/readyz", append(args, engine...))
}

// startFloor starts this program once more, as the floor.
func startFloor(_ context.Context, _ *plane, kubeconfig string, s *Scenario) (*processes, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	args := append(limits(s.QPS), "--kubeconfig="+kubeconfig, "--http-address="+address,
		fmt.Sprintf("--large-job-writes=%d", cmp.Or(s.FloorWrites, floorWriters)))
	p, err := startProcess(kubeconfig+".log", program, []string{floorEnv + "=1"}, args...)
	if err != nil {
		return nil, err
	}
	return &processes{own: []*process{p}, profiles: map[string]string{Floor: "http://" + address + profilePath}}, nil
}

// readyPatience is how long a contender may take to start.
const readyPatience = 2 * time.Minute

// launch starts a contender's process and waits until it says that it is ready.
func launch(kubeconfig, path, url, ready string, args []string) (*processes, error) {
	p, err := startProcess(kubeconfig+".log", path, nil, args...)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for {
		_, err := fetch(url + ready)
		if err == nil {
			return &processes{
				own: []*process{p}, metrics: []string{url + "/metrics"},
				profiles: map[string]string{filepath.Base(path): url + profilePath},
			}, nil
		}
		if ended := p.check(); ended != nil {
			return nil, ended
		}
		if time.Since(begin) > readyPatience {
			return nil, errors.Join(fmt.Errorf("not ready after %s: %w", readyPatience, err), p.stop())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// check returns an error if one of the processes has ended.
func (p *processes) check() error {
	var errs []error
	for _, one := range p.own {
		errs = append(errs, one.check())
	}
	return errors.Join(errs...)
}

// tail is the end of the output of the contender's own processes.
func (p *processes) tail() string {
	var all strings.Builder
	for _, one := range p.own {
		all.WriteString(one.tail())
	}
	return all.String()
}

func (p *processes) stop() error {
	var errs []error
	for _, one := range p.own {
		errs = append(errs, one.stop())
	}
	if p.stopEngine != nil {
		errs = append(errs, p.stopEngine())
	}
	return errors.Join(errs...)
}

// usage adds up what the contender's processes have used.
func (p *processes) usage() (usage, error) {
	var sum usage
	var pids []int
	for _, one := range p.own {
		pids = append(pids, one.pid())
	}
	if p.engine != 0 {
		pids = append(pids, p.engine)
	}
	for _, pid := range pids {
		u, err := usageOf(pid)
		if err != nil {
			return usage{}, err
		}
		sum.cpu += u.cpu
		sum.resident += u.resident
		sum.peak += u.peak
	}
	return sum, nil
}
