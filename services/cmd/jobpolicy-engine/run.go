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
	"jobpolicy.dev/services/internal/instrumented"
	"jobpolicy.dev/services/internal/policyserver"
	"jobpolicy.dev/services/internal/probes"
	"jobpolicy.dev/services/internal/telemetry"
	"jobpolicy.dev/services/internal/tlsfiles"
)

// transferTimeout is the time that a request has to arrive, and that a caller has
// to take an answer.
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

// service is what traces and metrics are labelled with.
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
	decider, err := instrumented.New(instrumented.Config{TracerProvider: tracing.Provider, Registerer: r, Logger: log})
	if err != nil {
		return nil, err
	}
	return policyserver.New(policyserver.Config{
		Engine:                  decider,
		Credentials:             creds,
		TracerProvider:          tracing.Provider,
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

// limitMemory makes the garbage collector work harder before the process takes all
// that it may. What is not Go's heap, and what is freed too late, has the rest. Below
// that the collector runs seldom: while it runs, it occupies every processor, and calls
// wait.
func limitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes / 4 * 3)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

// garbagePercent is how much garbage there may be for all memory in use. Go's own
// setting is 100.
const garbagePercent = 400

// doubleProcessors lets Go run twice as many goroutines at a time as there are
// processors, so that decisions and transfers never occupy all of Go's. While they are
// all occupied, Go looks for new calls only every 10 ms. Now a thread waits for them, and
// the operating system lets it run at once if one processor is free.
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

// shutDown says no first, so that callers go elsewhere, and then stops.
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
