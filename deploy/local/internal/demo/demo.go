// Package demo runs the documents' example Jobs on a local control plane, shows
// what becomes of them in one live table, and checks how each one ends.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
)

// namespace is where the Jobs run whose manifests name none.
const namespace = "default"

// Options say where the demo finds its parts and where it writes.
type Options struct {
	// BinDir holds the executables, as cluster.Options has it.
	BinDir string
	// StateDir is the control plane's directory; it is removed at the end.
	StateDir string
	// KubernetesDir holds servers of another version, as cluster.Options has it.
	KubernetesDir string
	// Node runs the pods.
	Node cluster.NodeKind
	// ExamplesDir holds the manifests.
	ExamplesDir string
	// RecordDir takes what the API server shows of each Job midway and at its end; empty:
	// nothing is recorded.
	RecordDir string
	// Timeout bounds the Jobs' run, from the first manifest on.
	Timeout time.Duration
	// Out takes the output. Size, if not nil, says that it is a terminal and how
	// many columns and lines that has: the table is then redrawn in place.
	Out  io.Writer
	Size func() (columns, lines int)
	// Progress is called for each step of the control plane's start.
	Progress func(cluster.Progress)
}

// atOnceInContainers is how many Jobs run at once in containers. With more, the
// kubelet of a machine with two cores may report a pod as ready only when the pod
// has ended, too late for the steps that wait for it.
const atOnceInContainers = 5

// errUnexpected: a Job did not end as the documents say.
var errUnexpected = errors.New("not every Job ended as expected")

// Run starts a control plane, runs the Jobs and stops it again. The error is nil only if
// every Job ended as the documents say, and everything could be shown.
func Run(ctx context.Context, opts Options) (err error) {
	examples, err := loadExamples(opts.ExamplesDir)
	if err != nil {
		return err
	}
	var environment []string
	if opts.Node == cluster.Containers {
		shareDirectories(examples)
	} else {
		var cleanUp func()
		if environment, cleanUp, err = containerEnvironment(ctx); err != nil {
			return err
		}
		defer cleanUp()
	}
	c, err := cluster.Start(ctx, clusterOptions(opts, environment))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop(context.WithoutCancel(ctx))) }()
	return runJobs(ctx, opts, c, examples)
}

// clusterOptions shortens the waits that the documents measure in tens of
// seconds: the first retry of a pod and of a container comes after a second. And it
// makes a group of CronJobs one of the cluster.
func clusterOptions(opts Options, environment []string) cluster.Options {
	extra := map[string][]string{cluster.Executor: {"--pod-failure-backoff=1s", "--cluster-group=" + clusterGroup + "=1"}}
	for _, variable := range environment {
		extra[cluster.Node] = append(extra[cluster.Node], "--container-env="+variable)
	}
	return cluster.Options{
		BinDir:       opts.BinDir,
		StateDir:     opts.StateDir,
		Progress:     opts.Progress,
		Node:         opts.Node,
		CrashBackoff: time.Second,
		ExtraArgs:    extra,

		KubernetesDir: opts.KubernetesDir,
	}
}

func runJobs(ctx context.Context, opts Options, c *cluster.Cluster, examples []*example) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	watched, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	if err := createNamespaces(watched, client, examples); err != nil {
		return err
	}
	obs, err := observe(watched, client, c.ExecutorURL(), examples)
	if err != nil {
		return err
	}
	started := time.Now()
	err = follow(watched, opts, c, client, obs)
	switch {
	case err == nil:
	case ctx.Err() == nil && watched.Err() != nil:
		fmt.Fprintf(opts.Out, "\nThe time is up: not every Job ended in %v.\n", opts.Timeout)
	default:
		return err
	}
	return report(ctx, opts, c, client, obs, time.Since(started))
}

// follow shows the Jobs, and records them, until every one has ended, or the time is up.
func follow(ctx context.Context, opts Options, c *cluster.Cluster, client kubernetes.Interface, obs *observer) error {
	done, recorded := make(chan struct{}), make(chan error, 1)
	records := newRecorder(c, client, opts)
	go func() { recorded <- records.run(ctx, obs, done) }()
	err := followTable(ctx, opts, c, client, obs)
	close(done)
	return cmp.Or(err, <-recorded)
}

// followTable takes the steps of the scripts and redraws the table until every Job has ended, or the time is up.
func followTable(ctx context.Context, opts Options, c *cluster.Cluster, client kubernetes.Interface, obs *observer) error {
	t := newTable(opts.Out, opts.Size)
	scripts := newDirector(obs, client, func(command string) { t.note("$ " + command) })
	if opts.Node == cluster.Containers {
		scripts.atOnce = atOnceInContainers
	}
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		obs.listen(ctx)
		if err := scripts.direct(ctx); err != nil {
			return err
		}
		rows := obs.rows()
		t.draw(rows)
		if allEnded(rows) {
			return nil
		}
		select {
		case <-tick.C:
		case <-c.Failed():
			return c.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// report shows the digits of pi, says how each Job ended, shows what jobpolicy tells of
// the Jobs, and sums up.
func report(ctx context.Context, opts Options, c *cluster.Cluster, client kubernetes.Interface, obs *observer, took time.Duration) error {
	obs.listen(ctx) // once more: the last Job has only just ended
	if pi := obs.past("pi"); pi.job != nil {
		if logs, err := jobLogs(ctx, client, pi.job.UID); err == nil && len(logs) > 0 {
			fmt.Fprintf(opts.Out, "\n$ kubectl logs job/pi\n%s\n", wrap(logs[0], 100))
		}
	}
	fmt.Fprintln(opts.Out)
	good := 0
	for _, ex := range obs.examples {
		r := check(ctx, client, obs, ex)
		r.print(opts.Out)
		if r.good() {
			good++
		}
	}
	err := showMore(ctx, opts, c, obs)
	fmt.Fprintf(opts.Out, "\n%d of %d Jobs ended as expected, after %v.\n", good, len(obs.examples), took.Round(time.Second))
	if good < len(obs.examples) {
		err = errors.Join(err, errUnexpected)
	}
	return err
}
