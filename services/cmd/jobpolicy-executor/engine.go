package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/credentials"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/services/internal/decider"
	"jobpolicy.dev/services/internal/kubeclient"
	"jobpolicy.dev/services/internal/probes"
	"jobpolicy.dev/services/internal/tlsfiles"
)

// Readiness asks the engine this often at most, and waits this long.
const (
	engineCheckTTL     = time.Second
	engineCheckTimeout = time.Second
)

// An engine is the engine that the executor asks, with the checks of it.
type engine struct {
	decider executor.Decider
	check   probes.Check
	// certificate checks the certificate that the executor shows to the engine.
	certificate probes.Check
	close       func()
	// follow keeps the credentials for the engine up to date, until its context is done.
	follow func(context.Context)
}

// newEngine makes the engine of --engine and --engine-fallback. client reads Secrets. needs
// are what the engine must support.
func (o *engineOptions) newEngine(needs []need, client kubernetes.Interface, tracing trace.TracerProvider, r prometheus.Registerer, log *slog.Logger) (*engine, error) {
	if o.target == embedded {
		local, err := decider.NewEmbedded(decider.EmbeddedConfig{TracerProvider: tracing, Registerer: r, Logger: log})
		return &engine{decider: local, check: alwaysThere(), certificate: noCertificate(), close: func() {}, follow: func(context.Context) {}}, err
	}
	creds, follow, err := o.credentials(client, log)
	if err != nil {
		return nil, err
	}
	certificate, err := tlsfiles.Watch(creds, r)
	if err != nil {
		return nil, err
	}
	info := newServerInfo(needs, log)
	remote, err := decider.NewRemote(decider.RemoteConfig{
		Target: o.target, Credentials: creds, TracerProvider: tracing, Timeout: o.timeout, FailFast: o.fallback == embedded,
		Answered: info.answered,
	})
	if err != nil {
		return nil, err
	}
	info.read = remote.ServerInfo
	check := answersAndSupports(remote, info)
	if o.fallback == embedded {
		check = unlessAway(check)
	}
	e := &engine{
		decider:     remote,
		check:       probes.Cached(probes.Check{Name: "engine", Run: check}, engineCheckTTL, engineCheckTimeout),
		certificate: certificate,
		close:       func() { _ = remote.Close() }, // only fails when closed twice
		follow:      follow,
	}
	if o.fallback == embedded {
		return e, e.fallBack(tracing, r, log)
	}
	return e, nil
}

// answersAndSupports checks that the engine answers, and then that it supports what is
// needed.
func answersAndSupports(remote *decider.Remote, info *serverInfo) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := remote.Check(ctx); err != nil {
			return err
		}
		return info.check(ctx)
	}
}

// unlessAway passes while the engine does not answer, because this process decides then. An
// engine that is too old answers, so this process does not decide instead of it.
func unlessAway(check func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := check(ctx); errors.Is(err, errTooOld) {
			return err
		}
		return nil
	}
}

// credentials returns credentials from a Secret or from files, and a function that keeps
// them up to date.
func (o *engineOptions) credentials(client kubernetes.Interface, log *slog.Logger) (credentials.TransportCredentials, func(context.Context), error) {
	if o.tls.Secret == "" {
		creds, err := o.tls.Credentials(log)
		return creds, func(context.Context) {}, err
	}
	name, err := parseSecret("--engine-tls-secret", o.tls.Secret)
	if err != nil {
		return nil, nil, err
	}
	secret := kubeclient.NewSecret(client, name)
	return o.tls.SecretCredentials(secret.Read, log), secret.Run, nil
}

// fallBack makes this process answer while the engine cannot be reached.
func (e *engine) fallBack(tracing trace.TracerProvider, r prometheus.Registerer, log *slog.Logger) error {
	local, err := decider.NewEmbedded(decider.EmbeddedConfig{TracerProvider: tracing, Registerer: r, Logger: log})
	if err != nil {
		return err
	}
	e.decider, err = decider.NewFallback(e.decider, local, r, log)
	return err
}

func noCertificate() probes.Check {
	return probes.Check{Name: "certificate", Idle: func() (string, bool) { return "the engine is in this process", true }}
}

func alwaysThere() probes.Check {
	return probes.Check{Name: "engine", Run: func(context.Context) error { return nil }}
}
