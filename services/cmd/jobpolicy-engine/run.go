package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/credentials"

	"jobpolicy.dev/services/internal/buildinfo"
	"jobpolicy.dev/services/internal/decider"
	"jobpolicy.dev/services/internal/policyserver"
	"jobpolicy.dev/services/internal/probes"
	"jobpolicy.dev/services/internal/telemetry"
	"jobpolicy.dev/services/internal/tlsfiles"
)

// transferTimeout is how long a request may take to arrive, and how long a caller may take
// to read an answer.
const transferTimeout = 20 * time.Second

// flushTimeout bounds sending the last traces.
const flushTimeout = 5 * time.Second

// run serves until the context is done, then drains.
func run(ctx context.Context, o *options, log *slog.Logger) (err error) {
	tracing, err := telemetry.StartTracing(ctx, service(), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush(tracing)) }()
	tracing.SetGlobal()

	registry := telemetry.NewRegistry(service())
	creds, err := o.tls.Credentials(log)
	if err != nil {
		return err
	}
	certificate, err := tlsfiles.Watch(creds, registry)
	if err != nil {
		return err
	}
	server, err := newPolicyServer(o, creds, tracing, registry, log)
	if err != nil {
		return err
	}
	web := probes.New(probes.Config{Gatherer: registry, Logger: log, Profiling: o.profiling, Ready: []probes.Check{certificate, server.AuthorizedCallers()}})
	return serve(ctx, o, server, web, log)
}

// service is the name and version in traces and metrics.
func service() telemetry.Service {
	return telemetry.Service{Name: name, Version: buildinfo.Version()}
}

func flush(t *telemetry.Tracing) error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	return t.Shutdown(ctx)
}

func newPolicyServer(o *options, creds credentials.TransportCredentials, tracing *telemetry.Tracing, r prometheus.Registerer, log *slog.Logger) (*policyserver.Server, error) {
	memory, err := o.memoryBytes()
	if err != nil {
		return nil, err
	}
	limitMemory(memory)
	doubleProcessors()
	spans := policyserver.LimitSpans(tracing.Provider)
	decider, err := decider.NewEmbedded(decider.EmbeddedConfig{TracerProvider: spans, Registerer: r, Logger: log})
	if err != nil {
		return nil, err
	}
	return policyserver.New(policyserver.Config{
		Engine:                  decider,
		Credentials:             creds,
		TracerProvider:          spans,
		Registerer:              r,
		Logger:                  log,
		Version:                 service().Version,
		MaxConcurrentCalls:      o.maxConcurrentCalls,
		MaxOpenCalls:            o.maxOpenCalls,
		MaxConnectionsPerCaller: o.maxConnectionsPerCaller,
		MaxConnections:          o.maxConnections,
		MemoryLimit:             memory,
		AuthorizedCallers:       o.authorizedCallers,
		ReceiveTimeout:          transferTimeout,
		SendTimeout:             transferTimeout,
		MaxConnectionAge:        o.maxConnectionAge,
	})
}

// limitMemory makes the garbage collector run often when Go uses three quarters of the
// memory limit. The last quarter is for memory that is not Go's, and for memory that is
// freed too late. Below three quarters the collector runs seldom, because it occupies every
// processor while it runs, and calls wait.
func limitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes / 4 * 3)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

// garbagePercent is how much garbage there may be before a collection, in percent of the
// memory in use. Go's default is 100.
const garbagePercent = 400

// doubleProcessors lets Go run twice as many goroutines at a time as there are processors,
// so that decisions and transfers never occupy all of Go's threads. If all were occupied,
// Go would look for new calls only every 10 ms. With a free thread, the operating system
// wakes it at once for a new call, if a processor is free.
func doubleProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
}

func serve(ctx context.Context, o *options, server *policyserver.Server, web *probes.Server, log *slog.Logger) error {
	grpcListener, err := net.Listen("tcp", o.grpcAddress)
	if err != nil {
		return fmt.Errorf("--grpc-address: %w", err)
	}
	var httpAddress string
	group, serving := errgroup.WithContext(ctx)
	if o.httpAddress != "" {
		httpListener, err := net.Listen("tcp", o.httpAddress)
		if err != nil {
			return errors.Join(fmt.Errorf("--http-address: %w", err), grpcListener.Close())
		}
		httpAddress = httpListener.Addr().String()
		group.Go(func() error { return web.Serve(httpListener) })
	}
	group.Go(func() error { return server.Serve(grpcListener) })
	group.Go(func() error {
		<-serving.Done()
		shutDown(o, server, web, log)
		return nil
	})
	log.Info("engine serving", "version", service().Version, "grpc", grpcListener.Addr().String(), "http", httpAddress)
	return group.Wait()
}

// shutDown first reports not ready, so that callers go elsewhere, and then stops.
func shutDown(o *options, server *policyserver.Server, web *probes.Server, log *slog.Logger) {
	log.Info("engine draining", "delay", o.shutdownDelay, "timeout", o.shutdownTimeout)
	web.Drain()
	server.Drain()
	time.Sleep(o.shutdownDelay)
	if !server.Shutdown(o.shutdownTimeout) {
		log.Warn("calls cut off at the end of the shutdown timeout")
	}
	web.Close()
	log.Info("engine stopped")
}
