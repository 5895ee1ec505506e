package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"jobpolicy.dev/services/internal/policyserver"
	"jobpolicy.dev/services/internal/servicemain"
	"jobpolicy.dev/services/internal/tlsfiles"
)

const name = "jobpolicy-engine"

const summary = `jobpolicy-engine serves jobpolicy.v1.PolicyService: it decides what to do about
Kubernetes Jobs. It keeps no state and does not call the API server;
jobpolicy-executor carries its decisions out.

Traces go where the standard OTEL_* variables say; set OTEL_EXPORTER_OTLP_ENDPOINT
to turn them on.`

// concurrentCalls is the default for how many calls are decided on at a time. One caller
// gets half of them: one less than there are processors, but at least 1. So one is left
// for others: without one, they would wait for milliseconds until the operating system
// takes a processor from a thread.
func concurrentCalls() int { return 2 * max(1, runtime.GOMAXPROCS(0)-1) }

// options are the command line.
type options struct {
	grpcAddress             string
	httpAddress             string
	profiling               bool
	maxConcurrentCalls      int
	maxOpenCalls            int
	maxConnectionsPerCaller int
	maxConnections          int
	memoryLimit             string
	authorizedCallers       string
	maxConnectionAge        time.Duration
	tls                     tlsfiles.Server
	shutdownDelay           time.Duration
	shutdownTimeout         time.Duration
}

// AddFlags implements servicemain.Options.
func (o *options) AddFlags(s *servicemain.Set) {
	serving := s.Group("Serving")
	serving.StringVar(&o.grpcAddress, "grpc-address", ":8443", "`Address` (host:port) to serve gRPC on.")
	serving.StringVar(&o.httpAddress, "http-address", "127.0.0.1:8081", "`Address` (host:port) to serve /healthz, /readyz and /metrics on, in plaintext. Empty: serve none of them.")
	serving.BoolVar(&o.profiling, "profiling", false, "Serve profiles under /debug/pprof/ on --http-address, to clients on the same machine.")
	serving.IntVar(&o.maxConcurrentCalls, "max-concurrent-calls", concurrentCalls(), "Calls that are decided on at a time; one caller gets half of them. Others wait for a second, then get RESOURCE_EXHAUSTED. Default: 2 for each processor but one, at least 2.")
	serving.IntVar(&o.maxOpenCalls, "max-open-calls", 1000, "Calls that may be open, including calls that wait or still arrive; one caller gets half of them. More get RESOURCE_EXHAUSTED at once.")
	serving.IntVar(&o.maxConnectionsPerCaller, "max-connections-per-caller", 100, "Connections that one caller, by the identity of its certificate, may have.")
	serving.IntVar(&o.maxConnections, "max-connections", 1000, "Connections that all callers together may have. When full, a new connection closes the oldest one of the caller with most connections; it is refused if its own caller would then have more.")
	serving.StringVar(&o.memoryLimit, "memory-limit", "512Mi", "Memory that the process may take, as a Kubernetes `quantity`. Requests and answers get a part of it, and are refused beyond that; sets GOMEMLIMIT to three quarters, unless that is set.")
	serving.DurationVar(&o.maxConnectionAge, "max-connection-age", 30*time.Minute, "Time after which a client is asked to connect anew, so that clients spread over replicas and certificates are checked again.")

	tls := s.Group("TLS and callers")
	o.tls.AddFlags(tls)
	tls.StringVar(&o.authorizedCallers, "authorized-callers-file", "", "YAML `file` that says which identities (SPIFFE ID, DNS name or common name of the certificate) may call which methods. Followed when it changes. Default: every caller may call everything.")

	shutdown := s.Group("Shutdown")
	shutdown.DurationVar(&o.shutdownDelay, "shutdown-delay-duration", 0, "Time to go on serving after a signal, while /readyz and gRPC health already say no, so that load balancers notice.")
	shutdown.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 20*time.Second, "Time that calls in progress get to end after that.")
}

// Validate implements servicemain.Options.
func (o *options) Validate() error {
	var errs servicemain.Problems
	errs.Require(o.grpcAddress != "", "--grpc-address must not be empty")
	errs.Require(o.maxConcurrentCalls >= 1, "--max-concurrent-calls must be at least 1, is %d", o.maxConcurrentCalls)
	errs.Require(o.maxOpenCalls >= 2, "--max-open-calls must be at least 2, is %d", o.maxOpenCalls)
	errs.Require(o.maxConnectionsPerCaller >= 1, "--max-connections-per-caller must be at least 1, is %d", o.maxConnectionsPerCaller)
	errs.Require(o.maxConnections >= 1, "--max-connections must be at least 1, is %d", o.maxConnections)
	_, err := o.memoryBytes()
	errs = append(errs, err)
	errs.Require(o.authorizedCallers == "" || o.tls.ClientCAFile != "", "--authorized-callers-file needs --client-ca-file: callers are known by their certificates")
	errs.Require(o.maxConnectionAge >= time.Second, "--max-connection-age must be at least 1s, is %s", o.maxConnectionAge)
	errs.Require(o.shutdownDelay >= 0, "--shutdown-delay-duration must not be negative, is %s", o.shutdownDelay)
	errs.Require(o.shutdownTimeout >= 0, "--shutdown-timeout must not be negative, is %s", o.shutdownTimeout)
	return errors.Join(append(errs, o.tls.Validate())...)
}

func (o *options) memoryBytes() (int64, error) {
	q, err := resource.ParseQuantity(o.memoryLimit)
	if err != nil {
		return 0, fmt.Errorf("--memory-limit must be a quantity such as 512Mi, is %q", o.memoryLimit)
	}
	if q.Value() < policyserver.MinMemoryLimit {
		return 0, fmt.Errorf("--memory-limit must be at least %dMi, is %s", policyserver.MinMemoryLimit>>20, o.memoryLimit)
	}
	return q.Value(), nil
}
