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

func runUp(args []string, stdout, stderr io.Writer) error {
	opts, err := parseUpFlags(args, stderr)
	if err != nil {
		return err
	}
	made, err := chooseStateDir(&opts)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	printer := newPrinter(stderr)
	opts.Progress = printer.step

	ctx, stop := signalContext()
	defer stop()
	fmt.Fprintf(stderr, "state directory %s\n", opts.StateDir)
	c, err := cluster.Start(ctx, opts)
	printer.finish()
	if err != nil {
		if made {
			_ = os.Remove(opts.StateDir) // Not if it has the logs of a failure.
		}
		if ctx.Err() != nil {
			err = errors.New("interrupted while starting; everything is stopped")
		}
		return err
	}
	fmt.Fprintf(stdout, "\nexport KUBECONFIG=%s\n\n", c.Kubeconfig())
	if !opts.WithoutExecutor {
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

func parseUpFlags(args []string, stderr io.Writer) (opts cluster.Options, err error) {
	self, err := os.Executable()
	if err != nil {
		return opts, fmt.Errorf("find this executable: %w", err)
	}
	opts.LocalPath = self
	flags := newFlags("up", upAbout, stderr)
	flags.StringVar(&opts.StateDir, "state-dir", "",
		"`directory` for data, keys, logs (default: a new one in "+os.TempDir()+"; with --keep "+keptStateDir()+")")
	flags.BoolVar(&opts.Keep, "keep", false,
		"keep the state directory at the end; the next \"up --keep\" continues from it")
	flags.StringVar(&opts.BinDir, "bin-dir", filepath.Dir(self), "`directory` of jobpolicy-engine and jobpolicy-executor")
	flags.Func("node", nodeUsage, func(kind string) (err error) {
		opts.Node, err = nodeKind(kind)
		return err
	})
	flags.StringVar(&opts.KubernetesDir, "kubernetes-dir", "", kubernetesDirUsage)
	flags.StringVar(&opts.NodeBinDir, "node-bin-dir", "", "`directory` of the programs of --node=containers (default: node in that of this executable)")
	flags.Func("image", "`file` with container images to load, for --node=containers; repeatable", func(file string) error {
		opts.Images = append(opts.Images, file)
		return nil
	})
	flags.Func("arg", "`component=flag` to append to a component's arguments, e.g. jobpolicy-executor=--pod-failure-backoff=1s; repeatable", func(text string) error {
		component, arg, found := strings.Cut(text, "=")
		if !found || !strings.HasPrefix(arg, "-") {
			return errors.New("want component=--flag=value")
		}
		if opts.ExtraArgs == nil {
			opts.ExtraArgs = map[string][]string{}
		}
		opts.ExtraArgs[component] = append(opts.ExtraArgs[component], arg)
		return nil
	})
	flags.BoolVar(&opts.WithoutEngine, "without-engine", false,
		"do not start the policy engine; the executor decides in its own process")
	flags.BoolVar(&opts.WithoutExecutor, "without-executor", false,
		"do not start the executor, so that you can run one by hand")
	return opts, parseFlags(flags, args)
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

// chooseStateDir completes the state directory, and reports whether it made one for this run.
func chooseStateDir(opts *cluster.Options) (made bool, err error) {
	switch {
	case opts.StateDir != "":
		opts.StateDir, err = filepath.Abs(opts.StateDir)
	case opts.Keep:
		opts.StateDir, err = filepath.Abs(keptStateDir())
	default:
		opts.StateDir, err = os.MkdirTemp("", "jobpolicy-local-")
		return true, err
	}
	return false, err
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
