package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
)

const upAbout = `Starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler, a node, the policy engine
and the executor on this machine, and waits. Ctrl-C stops them all and deletes what they wrote.`

// upFlags are the flags of "up".
type upFlags struct {
	stateDir string
	keep     bool
	binDir   string
	args     extraArgs

	node       cluster.NodeKind
	nodeBinDir string
	images     []string

	kubernetesDir string

	withoutEngine   bool
	withoutExecutor bool
}

func runUp(args []string, stdout, stderr io.Writer) error {
	f, err := parseUpFlags(args, stderr)
	if err != nil {
		return err
	}
	opts, err := f.options()
	if err != nil {
		return err
	}
	printer := newPrinter(stderr)
	opts.Progress = printer.step

	ctx, stop := signalContext()
	defer stop()
	fmt.Fprintf(stderr, "state directory %s\n", opts.StateDir)
	c, err := cluster.Start(ctx, opts)
	printer.finish()
	if err != nil {
		f.dropEmptyStateDir(opts.StateDir)
		if ctx.Err() != nil {
			err = errors.New("interrupted while starting; everything is stopped")
		}
		return err
	}
	fmt.Fprintf(stdout, "\nexport KUBECONFIG=%s\n\n", c.Kubeconfig())
	if !f.withoutExecutor {
		fmt.Fprintf(stderr, "why each Job is where it is: %s/debug/page/ (for programs: /debug/decisions)\n", c.ExecutorURL())
	}
	fmt.Fprintf(stderr, "logs in %s; Ctrl-C stops it\n", c.StateDir()+"/logs")

	failure := c.Wait(ctx)
	fmt.Fprintln(stderr)
	patience, release := stopContext()
	defer release()
	err = errors.Join(failure, c.Stop(patience))
	printer.finish()
	return err
}

func parseUpFlags(args []string, stderr io.Writer) (upFlags, error) {
	var f upFlags
	flags := newFlags("up", upAbout, stderr)
	flags.StringVar(&f.stateDir, "state-dir", "",
		"`directory` for data, keys, logs (default: a new one in "+os.TempDir()+"; with --keep "+keptStateDir()+")")
	flags.BoolVar(&f.keep, "keep", false,
		"keep the state directory at the end; the next \"up --keep\" continues from it")
	flags.StringVar(&f.binDir, "bin-dir", "",
		"`directory` of jobpolicy-engine and jobpolicy-executor (default: that of this executable)")
	flags.Func("node", nodeUsage, func(kind string) (err error) {
		f.node, err = nodeKind(kind)
		return err
	})
	flags.StringVar(&f.kubernetesDir, "kubernetes-dir", "", kubernetesDirUsage)
	flags.StringVar(&f.nodeBinDir, "node-bin-dir", "", "`directory` of the programs of --node=containers (default: node in that of this executable)")
	flags.Func("image", "`file` with container images to load, for --node=containers; repeatable", func(file string) error {
		f.images = append(f.images, file)
		return nil
	})
	flags.Var(&f.args, "arg",
		"`component=flag` to append to a component's arguments, e.g. jobpolicy-executor=--pod-failure-backoff=1s; repeatable")
	flags.BoolVar(&f.withoutEngine, "without-engine", false,
		"do not start the policy engine; the executor decides in its own process")
	flags.BoolVar(&f.withoutExecutor, "without-executor", false,
		"do not start the executor, so that you can run one by hand")
	return f, parseFlags(flags, args)
}

// kubernetesDirUsage describes the flag --kubernetes-dir.
const kubernetesDirUsage = "`directory` of kube-apiserver, kube-controller-manager and kube-scheduler of another version (deploy/local/build-version.sh builds some)"

// nodeUsage describes the flag --node.
const nodeUsage = "what runs the pods: `processes` of this machine (the default), or containers (needs root and make build-node)"

func nodeKind(text string) (cluster.NodeKind, error) {
	switch kind := cluster.NodeKind(text); kind {
	case cluster.Processes, cluster.Containers:
		return kind, nil
	}
	return "", fmt.Errorf("want %s or %s", cluster.Processes, cluster.Containers)
}

func (f upFlags) options() (cluster.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return cluster.Options{}, fmt.Errorf("find this executable: %w", err)
	}
	if f.binDir == "" {
		f.binDir = filepath.Dir(self)
	}
	stateDir, err := f.chooseStateDir()
	if err != nil {
		return cluster.Options{}, fmt.Errorf("state directory: %w", err)
	}
	return cluster.Options{
		StateDir:        stateDir,
		Keep:            f.keep,
		BinDir:          f.binDir,
		LocalPath:       self,
		ExtraArgs:       f.args,
		Node:            f.node,
		NodeBinDir:      f.nodeBinDir,
		KubernetesDir:   f.kubernetesDir,
		Images:          f.images,
		WithoutEngine:   f.withoutEngine,
		WithoutExecutor: f.withoutExecutor,
	}, nil
}

func (f upFlags) chooseStateDir() (string, error) {
	if f.stateDir != "" {
		return filepath.Abs(f.stateDir)
	}
	if f.keep {
		return filepath.Abs(keptStateDir())
	}
	return os.MkdirTemp("", "jobpolicy-local-")
}

// dropEmptyStateDir deletes a directory that was made for this run and is still empty. If
// it has content, that is the logs of a failure.
func (f upFlags) dropEmptyStateDir(path string) {
	if f.stateDir == "" && !f.keep {
		_ = os.Remove(path)
	}
}

// keptStateDir is where the XDG base directory specification puts the state of
// a program.
func keptStateDir() string {
	const name = "jobpolicy-local"
	if base := os.Getenv("XDG_STATE_HOME"); base != "" {
		return filepath.Join(base, name)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return name
	}
	return filepath.Join(home, ".local", "state", name)
}

// signalContext ends with the signals that ask a program to end. A hangup is
// one of them, unless the program was started to outlive its terminal (nohup).
func signalContext() (context.Context, context.CancelFunc) {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), signals...)
}

// echoDelay is how long further signals count as copies of the first one. For example,
// timeout(1) signals its child and then the child's process group.
const echoDelay = time.Second

// stopContext bounds an orderly stop: a second Ctrl-C ends it, and what has not
// stopped by then is killed.
func stopContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-time.After(echoDelay):
		case <-ctx.Done():
			return
		}
		again, stop := signalContext()
		defer stop()
		select {
		case <-again.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// extraArgs collects --arg flags by component.
type extraArgs map[string][]string

func (a *extraArgs) String() string { return "" }

func (a *extraArgs) Set(text string) error {
	component, arg, found := strings.Cut(text, "=")
	if !found || !strings.HasPrefix(arg, "-") {
		return errors.New("want component=--flag=value")
	}
	if *a == nil {
		*a = extraArgs{}
	}
	(*a)[component] = append((*a)[component], arg)
	return nil
}
