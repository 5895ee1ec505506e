// Jobpolicy-simulate plays a Job of a file in virtual time. It is the command simulate of
// kubectl jobpolicy without its flags for a cluster, and builds in a fraction of the time.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/simulation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}

// run runs the program and returns the exit code.
func run(ctx context.Context, args []string, streams cli.IO) int {
	streams.Out = cli.Printable(streams.Out)
	cmd := cli.Interruptible(simulation.New(streams, nil))
	cmd.Use = strings.Replace(cmd.Use, "simulate", "jobpolicy-simulate", 1)
	cmd.Example = strings.ReplaceAll(cmd.Example, "kubectl jobpolicy simulate", cmd.Name())
	return cli.Run(ctx, cmd, args, streams)
}
