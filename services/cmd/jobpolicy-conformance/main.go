// Jobpolicy-conformance checks an engine of the contract jobpolicy.v1.
//
//	jobpolicy-conformance --address dns:///localhost:8443 [TLS flags] [--junit FILE]
//
// It asks the engine every question of proto/conformance, prints a table, and ends with
// status 1 if an answer is wrong. Status 3 says that there is no result: the engine is not there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/tlsfiles"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// options are the command line.
type options struct {
	address string
	tls     tlsfiles.Client
	timeout time.Duration
	junit   string
}

// run runs the program and returns the exit status.
func run(ctx context.Context, args []string, streams cli.IO) int {
	o := options{}
	cmd := &cobra.Command{
		Use: "jobpolicy-conformance --address ADDRESS", Short: "Check an engine of the contract jobpolicy.v1",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return cli.UsageError{Err: err}
			}
			return o.engine(cmd.Context(), streams.Out)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.junit, "junit", "", "`File` to write the results to as JUnit XML.")
	flags.StringVar(&o.address, "address", "", "gRPC `target` of the engine, such as dns:///localhost:8443.")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "How long the engine may take for one answer.")
	o.tls.AddFlags(flags)
	return cli.Run(ctx, cmd, args, streams)
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

// engine asks an engine, and reports cli.ErrNo if an answer is wrong.
func (o *options) engine(ctx context.Context, stdout io.Writer) error {
	creds, err := o.tls.Credentials(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(o.address, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(jobpolicyv1grpc.MaxMessageBytes), grpc.MaxCallSendMsgSize(jobpolicyv1grpc.MaxMessageBytes), grpc.WaitForReady(true)))
	if err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	defer conn.Close()
	results, err := check(ctx, conn, o.timeout)
	if err != nil {
		return err
	}
	if err := o.report(stdout, results); err != nil {
		return err
	}
	if failures(results) > 0 {
		return cli.ErrNo
	}
	return nil
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
