// Jobpolicy-conformance checks an engine of the contract jobpolicy.v1.
//
//	jobpolicy-conformance --address dns:///localhost:8443 [TLS flags] [--junit FILE]
//
// It asks the engine every question of proto/conformance, prints a table, and ends with
// status 1 if an answer is wrong.
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
	address string
	tls     tlsfiles.Client
	timeout time.Duration
	junit   string
	version bool
}

// run runs the program and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := options{}
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
	passed, err := o.engine(ctx, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	}
	if err != nil || !passed {
		return program.ExitFailed
	}
	return program.ExitOK
}

func (o *options) flags(stderr io.Writer) *pflag.FlagSet {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: %s --address ADDRESS [flags]\n\n%s", name, flags.FlagUsages())
	}
	flags.StringVar(&o.junit, "junit", "", "`File` to write the results to as JUnit XML.")
	flags.BoolVar(&o.version, "version", false, "Print the version and end.")
	flags.StringVar(&o.address, "address", "", "gRPC `target` of the engine, such as dns:///localhost:8443.")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "How long the engine may take for one answer.")
	o.tls.AddFlags(flags)
	return flags
}

func (o *options) validate(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("there are only flags, got %q", args)
	case o.address == "":
		return errors.New("--address is required")
	case o.timeout <= 0:
		return fmt.Errorf("--timeout must be above 0, is %s", o.timeout)
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
