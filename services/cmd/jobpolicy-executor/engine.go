package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"jobpolicy.dev/services/internal/decider"
	"jobpolicy.dev/services/internal/judge"
	"jobpolicy.dev/services/internal/probes"
)

// Readiness asks the engine this often at most, and waits this long.
const (
	engineCheckTTL     = time.Second
	engineCheckTimeout = time.Second
)

// An engine is whom the executor asks, and how to see that it answers.
type engine struct {
	decider decider.Decider
	check   probes.Check
	close   func()
}

// newEngine makes what --engine and --engine-fallback ask for.
func (o *engineOptions) newEngine(tracing trace.TracerProvider, r prometheus.Registerer, log *slog.Logger) (*engine, error) {
	if o.target == embedded {
		local, err := judge.New(judge.Config{TracerProvider: tracing, Registerer: r, Logger: log})
		return &engine{decider: local, check: alwaysThere(), close: func() {}}, err
	}
	creds, err := o.tls.Credentials(log)
	if err != nil {
		return nil, err
	}
	remote, err := decider.NewRemote(decider.RemoteConfig{
		Target: o.target, Credentials: creds, TracerProvider: tracing, Timeout: o.timeout, FailFast: o.fallback == embedded,
	})
	if err != nil {
		return nil, err
	}
	e := &engine{
		decider: remote,
		check:   probes.Cached(probes.Check{Name: "engine", Run: remote.Check}, engineCheckTTL, engineCheckTimeout),
		close:   func() { _ = remote.Close() }, // only fails when closed twice
	}
	if o.fallback == embedded {
		return e, e.fallBack(tracing, r, log)
	}
	return e, nil
}

// fallBack lets this process answer while the engine is away: there always is an
// answer then.
func (e *engine) fallBack(tracing trace.TracerProvider, r prometheus.Registerer, log *slog.Logger) error {
	local, err := judge.New(judge.Config{TracerProvider: tracing, Registerer: r, Logger: log})
	if err != nil {
		return err
	}
	e.check = alwaysThere()
	e.decider, err = decider.NewFallback(e.decider, local, r, log)
	return err
}

func alwaysThere() probes.Check {
	return probes.Check{Name: "engine", Run: func(context.Context) error { return nil }}
}
