package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"jobpolicy.dev/services/internal/flaggroup"
	"jobpolicy.dev/services/internal/tlsfiles"
)

const name = "jobpolicy-engine"

const summary = `jobpolicy-engine serves jobpolicy.v1.PolicyService: it decides what is to become
of Kubernetes Jobs. It keeps no state and talks to nobody; see jobpolicy-executor
for the program that carries its decisions out.

Traces go where the standard OTEL_* variables say; set OTEL_EXPORTER_OTLP_ENDPOINT
to turn them on.`

// callsPerProcessor is the default bound of calls in progress. Deciding is pure
// computation; more calls at a time would only need more memory.
const callsPerProcessor = 4

// options are the command line.
type options struct {
	grpcAddress        string
	httpAddress        string
	profiling          bool
	maxConcurrentCalls int
	maxConnectionAge   time.Duration
	tls                tlsfiles.Server
	shutdownDelay      time.Duration
	shutdownTimeout    time.Duration
}

// AddFlags implements program.Options.
func (o *options) AddFlags(s *flaggroup.Set) {
	serving := s.Group("Serving")
	serving.StringVar(&o.grpcAddress, "grpc-address", ":8443", "`Address` (host:port) to serve gRPC on.")
	serving.StringVar(&o.httpAddress, "http-address", "127.0.0.1:8081", "`Address` (host:port) to serve /healthz, /readyz and /metrics on, in plaintext. Empty: do not.")
	serving.BoolVar(&o.profiling, "profiling", false, "Serve profiles under /debug/pprof/ on --http-address, to clients of the same machine.")
	serving.IntVar(&o.maxConcurrentCalls, "max-concurrent-calls", callsPerProcessor*runtime.GOMAXPROCS(0), "Calls that are decided on at a time. Others wait for a second, then get RESOURCE_EXHAUSTED. Default: 4 for each processor.")
	serving.DurationVar(&o.maxConnectionAge, "max-connection-age", 30*time.Minute, "Time after which a client is asked to connect anew, so that clients spread over replicas and certificates are checked again.")

	o.tls.AddFlags(s.Group("TLS"))

	shutdown := s.Group("Shutdown")
	shutdown.DurationVar(&o.shutdownDelay, "shutdown-delay-duration", 0, "Time to go on serving after a signal, while /readyz and gRPC health already say no, so that load balancers notice.")
	shutdown.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 20*time.Second, "Time that calls in progress get to end after that.")
}

// Validate implements program.Options.
func (o *options) Validate() error {
	var errs []error
	if o.grpcAddress == "" {
		errs = append(errs, errors.New("--grpc-address must not be empty"))
	}
	if o.maxConcurrentCalls < 1 {
		errs = append(errs, fmt.Errorf("--max-concurrent-calls must be at least 1, is %d", o.maxConcurrentCalls))
	}
	if o.maxConnectionAge < time.Second {
		errs = append(errs, fmt.Errorf("--max-connection-age must be at least 1s, is %s", o.maxConnectionAge))
	}
	if o.shutdownDelay < 0 {
		errs = append(errs, fmt.Errorf("--shutdown-delay-duration must not be negative, is %s", o.shutdownDelay))
	}
	if o.shutdownTimeout < 0 {
		errs = append(errs, fmt.Errorf("--shutdown-timeout must not be negative, is %s", o.shutdownTimeout))
	}
	return errors.Join(append(errs, o.tls.Validate())...)
}
