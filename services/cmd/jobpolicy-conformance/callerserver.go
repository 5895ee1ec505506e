package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/credentials"

	"jobpolicy.dev/services/internal/buildinfo"
	"jobpolicy.dev/services/internal/instrumented"
	"jobpolicy.dev/services/internal/policyserver"
)

// lookAgain is how often the command checks whether the caller is done.
const lookAgain = 50 * time.Millisecond

// newWatchedServer returns the real server of the engine. A watcher sees its
// decisions on Jobs, also those in batches, and injects faults into some.
func newWatchedServer(w *watcher, creds credentials.TransportCredentials) (*policyserver.Server, error) {
	registry, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	watched, err := instrumented.New(instrumented.Config{
		TracerProvider: noop.NewTracerProvider(), Registerer: registry, Logger: log, Decide: w.decide,
	})
	if err != nil {
		return nil, err
	}
	return policyserver.New(policyserver.Config{
		Engine: watched, Credentials: creds, TracerProvider: noop.NewTracerProvider(), Registerer: registry, Logger: log,
		Version: buildinfo.Version(), MaxConcurrentCalls: 16, MaxOpenCalls: 1000, MaxConnectionsPerCaller: 100, MaxConnections: 100, MemoryLimit: 1 << 30,
		ReceiveTimeout: time.Minute, SendTimeout: time.Minute, MaxConnectionAge: time.Hour,
	})
}

// caller serves a watched engine until enough Jobs have ended and the caller asks nothing
// more, and reports whether the caller did everything right.
func (o *options) caller(ctx context.Context, stdout io.Writer) (passed bool, err error) {
	creds, err := o.server.Credentials(slog.New(slog.DiscardHandler))
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	w := newWatcher()
	var api net.Addr
	if o.kubeconfig != "" {
		cluster := newClusterWatcher()
		w, cluster.opaque = cluster.watcher, o.opaqueStatus
		if api, err = startAPIProxy(ctx, o.kubeconfig, o.apiListen, cluster); err != nil {
			return false, err
		}
	}
	server, err := newWatchedServer(w, creds)
	if err != nil {
		return false, err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return false, fmt.Errorf("--listen: %w", err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer server.Shutdown(0)
	fmt.Fprintf(stdout, "Let the caller ask the engine at %s about %d Jobs.\n", listener.Addr(), o.jobs)
	if api != nil {
		fmt.Fprintf(stdout, "Let it reach the API server at http://%s.\n", api)
	}
	for !o.atRest(w) && ctx.Err() == nil {
		select {
		case err := <-served:
			return false, err
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
	results := w.results()
	if n, silent := w.done(); n < o.jobs {
		err = fmt.Errorf("%d of %d Jobs came to their end in %s", n, o.jobs, o.timeout)
	} else if silent < o.silence {
		err = fmt.Errorf("the caller still asks after %s, want a silence of %s", o.timeout, o.silence)
	}
	return failures(results) == 0, errors.Join(o.report(stdout, results), err)
}

// atRest reports whether enough Jobs have ended and the caller has been silent for the
// required time: it may have to ask once more to write the last status.
func (o *options) atRest(w *watcher) bool {
	n, silent := w.done()
	return n >= o.jobs && silent >= o.silence
}
