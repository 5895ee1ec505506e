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

// A contender is who takes care of the Jobs.
type contender struct {
	name string
	// start starts its processes with a kubeconfig file, for a scenario.
	start func(ctx context.Context, p *plane, kubeconfig string, s *Scenario) (*crew, error)
	// writesStatus is false for the floor: Jobs under it never end.
	writesStatus bool
	// ours: it is this project's.
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

// A crew is the processes of a contender while it runs.
type crew struct {
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

// limits are the flags of a client's rate, by which all contenders are called.
func limits(qps int) []string {
	burst := limitedBurst
	if qps == 0 {
		qps, burst = unlimited, unlimited
	}
	return []string{fmt.Sprintf("--kube-api-qps=%d", qps), fmt.Sprintf("--kube-api-burst=%d", burst)}
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func startBuiltIn(_ context.Context, p *plane, kubeconfig string, s *Scenario) (*crew, error) {
	address, err := freeAddress()
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

func startServices(ctx context.Context, p *plane, kubeconfig string, s *Scenario) (*crew, error) {
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

func startEmbedded(_ context.Context, p *plane, kubeconfig string, s *Scenario) (*crew, error) {
	return startExecutor(p, kubeconfig, s, "--engine=embedded")
}

func startExecutor(p *plane, kubeconfig string, s *Scenario, engine ...string) (*crew, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := append(limits(s.QPS), "--kubeconfig="+kubeconfig, "--controllers=job-controller",
		"--replace-builtin", "--leader-elect=false",
		fmt.Sprintf("--concurrent-job-syncs=%d", jobSyncs), "--http-address="+address, "--profiling")
	return launch(kubeconfig, filepath.Join(p.binaries, cluster.ExecutorBinary), "http://"+address, "/readyz", append(args, engine...))
}

// startFloor starts this program once more, in the part of the floor.
func startFloor(_ context.Context, _ *plane, kubeconfig string, s *Scenario) (*crew, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := append(limits(s.QPS), "--kubeconfig="+kubeconfig, "--http-address="+address,
		fmt.Sprintf("--large-job-writes=%d", cmp.Or(s.FloorWrites, floorWriters)))
	p, err := startProcess(kubeconfig+".log", program, []string{floorEnv + "=1"}, args...)
	if err != nil {
		return nil, err
	}
	return &crew{own: []*process{p}, profiles: map[string]string{Floor: "http://" + address + profilePath}}, nil
}

// readyPatience is how long a contender may take to start.
const readyPatience = 2 * time.Minute

// launch starts a contender's process and waits until it says that it is ready.
func launch(kubeconfig, path, url, ready string, args []string) (*crew, error) {
	p, err := startProcess(kubeconfig+".log", path, nil, args...)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for {
		_, err := fetch(url + ready)
		if err == nil {
			return &crew{
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
func (c *crew) check() error {
	var errs []error
	for _, p := range c.own {
		errs = append(errs, p.check())
	}
	return errors.Join(errs...)
}

// tail is how the output of its own processes ends.
func (c *crew) tail() string {
	var all strings.Builder
	for _, p := range c.own {
		all.WriteString(p.tail())
	}
	return all.String()
}

func (c *crew) stop() error {
	var errs []error
	for _, p := range c.own {
		errs = append(errs, p.stop())
	}
	if c.stopEngine != nil {
		errs = append(errs, c.stopEngine())
	}
	return errors.Join(errs...)
}

// usage adds up what its processes have used.
func (c *crew) usage() (usage, error) {
	var sum usage
	var pids []int
	for _, p := range c.own {
		pids = append(pids, p.pid())
	}
	if c.engine != 0 {
		pids = append(pids, c.engine)
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
