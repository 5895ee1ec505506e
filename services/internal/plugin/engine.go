package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/decider"
	"jobpolicy.dev/services/internal/tlsfiles"
)

// engineFlags say which engine to ask.
type engineFlags struct {
	target  string
	timeout time.Duration
	tls     tlsfiles.Client
}

func (f *engineFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.target, "engine", "", "`Address` of a policy engine to ask, such as host:port or another gRPC target. Default: the one that is built in.")
	fs.DurationVar(&f.timeout, "engine-timeout", 5*time.Second, "How long the engine may take to answer, including the wait for a connection.")
	f.tls.AddFileFlags(fs)
}

func (f *engineFlags) validate() error {
	if f.target == "" && f.tls.IsSet() {
		return cli.Usagef("--engine is required with --engine-ca-file, --engine-cert-file, --engine-key-file, --engine-server-name and --engine-insecure")
	}
	if f.timeout <= 0 {
		return cli.Usagef("--engine-timeout must be above 0s, is %s", f.timeout)
	}
	if err := f.tls.Validate(); err != nil {
		return cli.UsageError{Err: err}
	}
	return nil
}

// An asked is an engine that can be asked.
type asked struct {
	job     explain.Decide
	cronJob explain.DecideCronJob
	close   func()
}

// ask returns the engine that the flags name.
func (f *engineFlags) ask(ctx context.Context) (asked, error) {
	if f.target == "" {
		return asked{engine.DecideJob, cronjob.Decide, func() {}}, nil
	}
	creds, err := f.tls.Credentials(slog.New(slog.DiscardHandler))
	if err != nil {
		return asked{}, err
	}
	remote, err := decider.NewRemote(decider.RemoteConfig{
		Target: f.target, Credentials: creds, TracerProvider: noop.NewTracerProvider(), Timeout: f.timeout,
	})
	if err != nil {
		return asked{}, err
	}
	return asked{
		job: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
			resp, err := remote.DecideJob(ctx, req)
			return resp, f.failed(err)
		},
		cronJob: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
			resp, err := remote.DecideCronJob(ctx, req)
			return resp, f.failed(err)
		},
		close: func() { _ = remote.Close() }, // only fails when closed twice
	}, nil
}

// failed adds to an error which engine returned it.
func (f *engineFlags) failed(err error) error {
	if err == nil {
		return nil
	}
	return engineError{f.target, status.Convert(err)}
}

// An engineError is the error of a remote engine.
type engineError struct {
	target string
	status *status.Status
}

func (e engineError) Error() string {
	return fmt.Sprintf("engine %s: %s: %s", e.target, e.status.Code(), e.status.Message())
}

// GRPCStatus is for status.Code.
func (e engineError) GRPCStatus() *status.Status { return e.status }
