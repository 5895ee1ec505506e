// Jobpolicy-conformance checks an engine of the contract jobpolicy.v1, or a caller of an
// engine.
//
//	jobpolicy-conformance engine --address dns:///localhost:8443 [TLS flags] [--junit FILE]
//	jobpolicy-conformance caller --listen localhost:8443 --jobs 4 [TLS flags] [--junit FILE]
//
// It asks an engine every question of proto/conformance. For a caller it is the engine: it
// answers, injects faults on purpose, and compares each snapshot with what the caller
// was told to do. With --kubeconfig it is also a proxy between the caller and its API
// server: it sees each write, and drops some answers. It prints a table, and ends with status 1 if
// something is wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/buildinfo"
	"jobpolicy.dev/services/internal/program"
	"jobpolicy.dev/services/internal/tlsfiles"
)

const name = "jobpolicy-conformance"

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// options are the command line.
type options struct {
	what    string // engine or caller
	address string
	tls     tlsfiles.Client
	listen  string
	server  tlsfiles.Server
	// The API server that the caller writes to. "": it is not watched.
	kubeconfig, apiListen string
	opaqueStatus          bool

	jobs    int
	silence time.Duration
	timeout time.Duration
	junit   string
	version bool
}

// run runs the program and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := options{}
	if len(args) > 0 {
		o.what = args[0]
	}
	flags := o.flags(stderr)
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return program.ExitOK
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return program.ExitUsage
	case o.version:
		fmt.Fprintln(stdout, name, buildinfo.Summary())
		return program.ExitOK
	}
	if err := o.validate(flags.Args()); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return program.ExitUsage
	}
	check := o.engine
	if o.what == "caller" {
		check = o.caller
	}
	passed, err := check(ctx, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	}
	if err != nil || !passed {
		return program.ExitFailed
	}
	return program.ExitOK
}

// flags are the flags of the commands engine and caller.
func (o *options) flags(stderr io.Writer) *pflag.FlagSet {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: %[1]s engine --address ADDRESS [flags]\n       %[1]s caller --listen ADDRESS [flags]\n\n%[2]s", name, flags.FlagUsages())
	}
	flags.StringVar(&o.junit, "junit", "", "`File` to write the results to as JUnit XML.")
	flags.BoolVar(&o.version, "version", false, "Print the version and end.")
	if o.what == "caller" {
		flags.StringVar(&o.listen, "listen", "localhost:8443", "`Address` to serve the engine on.")
		flags.IntVar(&o.jobs, "jobs", 1, "How many Jobs the caller brings to their end.")
		flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long the caller may take for all of them.")
		flags.DurationVar(&o.silence, "silence", 2*time.Second, "For how long the caller asks about no Job when it is done: only then the checks end.")
		flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`File` that leads to the caller's API server. If set, the kit passes the caller's requests on to it, and checks them.")
		flags.StringVar(&o.apiListen, "api-listen", "localhost:8001", "With --kubeconfig: local `address` at which the caller reaches the API server, without a certificate.")
		flags.BoolVar(&o.opaqueStatus, "opaque-status", false, "With --kubeconfig: the caller's statuses have a shape of their own. The checks that must see a status being written are left out.")
		o.server.AddFlags(flags)
		return flags
	}
	flags.StringVar(&o.address, "address", "", "gRPC `target` of the engine, such as dns:///localhost:8443.")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "How long the engine may take for one answer.")
	o.tls.AddFlags(flags)
	return flags
}

func (o *options) validate(args []string) error {
	switch {
	case len(args) != 1 || args[0] != "engine" && args[0] != "caller":
		return fmt.Errorf(`what to check must be "engine" or "caller", is %q`, args)
	case args[0] != o.what:
		return fmt.Errorf("%q must come before the flags", args[0])
	case o.opaqueStatus && o.kubeconfig == "":
		return errors.New("--opaque-status needs --kubeconfig: without it no write is seen")
	case o.what == "caller" && o.jobs < 1:
		return fmt.Errorf("--jobs must be 1 or more, is %d", o.jobs)
	case o.what == "engine" && o.address == "":
		return errors.New("--address is required")
	case o.what == "caller" && (o.silence < 0 || o.silence >= o.timeout):
		return fmt.Errorf("--silence must be 0 or more and less than --timeout, is %s", o.silence)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout must be above 0, is %s", o.timeout)
	}
	if o.what == "caller" {
		return o.server.Validate()
	}
	return o.tls.Validate()
}

// engine asks an engine, and reports whether all of its answers are right.
func (o *options) engine(ctx context.Context, stdout io.Writer) (passed bool, err error) {
	creds, err := o.tls.Credentials(slog.New(slog.DiscardHandler))
	if err != nil {
		return false, err
	}
	conn, err := grpc.NewClient(o.address, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(jobpolicyv1grpc.MaxMessageBytes), grpc.MaxCallSendMsgSize(jobpolicyv1grpc.MaxMessageBytes), grpc.WaitForReady(true)))
	if err != nil {
		return false, fmt.Errorf("--address: %w", err)
	}
	defer conn.Close()
	results, err := check(ctx, conn, o.timeout)
	if err != nil {
		return false, err
	}
	return failures(results) == 0, o.report(stdout, results)
}

func (o *options) report(stdout io.Writer, results []result) error {
	if err := writeTable(stdout, results); err != nil {
		return err
	}
	if o.junit != "" {
		if err := writeJUnit(o.junit, results); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	return nil
}
