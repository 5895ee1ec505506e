package hostnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Run registers the node and runs the pods bound to it until ctx ends. It then kills their processes and returns nil;
// their statuses are left as they are, and the next Run with the same RootDir treats those containers as lost. It waits
// for an API server that does not answer yet. An error means that the configuration is unusable or the kubelet API
// cannot be served.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("host node: %w", err)
	}
	if err := cfg.run(ctx); err != nil {
		return fmt.Errorf("host node %s: %w", cfg.NodeName, err)
	}
	return nil
}

func (c Config) run(ctx context.Context) error {
	api, err := newClients(c.Kubeconfig)
	if err != nil {
		return inField("Kubeconfig", err)
	}
	tlsConfig, err := c.tlsConfig()
	if err != nil {
		return err
	}
	root, err := filepath.Abs(c.RootDir)
	if err != nil {
		return inField("RootDir", err)
	}
	files := layout{root}
	locked, err := lock(files)
	if err != nil {
		return inField("RootDir", err)
	}
	defer locked.Close()
	listener, err := tls.Listen("tcp", c.Address, tlsConfig)
	if err != nil {
		return inField("Address", err)
	}
	defer listener.Close()
	return withProcesses(files, c.logger(), func(l *launcher) error {
		return serve(ctx, c, api, files, listener, l)
	})
}

// withProcesses makes sure that no process of a pod lives before f or after it, or after the death of this process.
func withProcesses(files layout, logger *slog.Logger, f func(*launcher) error) error {
	if err := sweep(files); err != nil {
		return err
	}
	watching, err := watch(files)
	if err != nil {
		return err
	}
	defer func() {
		if err := watching.Close(); err != nil {
			logger.Warn("watching shell did not end well", "error", err)
		}
	}()
	l := newLauncher()
	defer l.close()
	return f(l)
}

// clients are two connections' worth of API access, so that events never delay what matters.
type clients struct {
	main, events kubernetes.Interface
}

func newClients(kubeconfig string) (clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return clients{}, err
	}
	config.UserAgent = "jobpolicy-hostnode"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1 // the number of writers is the limit
	main, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	slow := rest.CopyConfig(config)
	slow.QPS, slow.Burst = 20, 50
	events, err := kubernetes.NewForConfig(slow)
	if err != nil {
		return clients{}, err
	}
	return clients{main, events}, nil
}

// serve runs the parts of the node until ctx ends or one of them cannot go on.
func serve(ctx context.Context, cfg Config, c clients, files layout, listener net.Listener, l *launcher) error {
	logger := cfg.logger()
	parts, ctx := errgroup.WithContext(ctx)
	statuses := newStatusWriter(c.main, logger)
	pods := newAgent(c.main, cfg.NodeName, podDeps{
		runner: &runner{
			layout: files, launcher: l, lookup: apiLookup{c.main}, tokens: newTokenCache(c.main),
			base: baseEnv(os.Getenv, cfg.ContainerEnv), logger: logger,
		},
		statuses: statuses,
		events:   newPodEvents(ctx, c.events, cfg.NodeName),
		backoff:  crashBackoff{base: cfg.CrashBackoffBase, max: cfg.CrashBackoffMax},
		logger:   logger,
	})
	node := &registrar{
		client: c.main, name: cfg.NodeName, port: portOf(listener), maxPods: cfg.MaxPods, logger: logger,
	}
	parts.Go(func() error { return serveAPI(ctx, &api{agent: pods, layout: files, logger: logger}, listener) })
	parts.Go(func() error { return pods.run(ctx) })
	parts.Go(func() error { statuses.run(ctx); return nil })
	parts.Go(func() error { node.run(ctx); return nil })
	parts.Go(func() error { node.renewLease(ctx); return nil })
	return parts.Wait()
}

func portOf(l net.Listener) int32 { return int32(l.Addr().(*net.TCPAddr).Port) }

func serveAPI(ctx context.Context, a *api, listener net.Listener) error {
	server := &http.Server{
		Handler:           a.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(a.logger.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the kubelet API: %w", err)
	}
	return nil
}
