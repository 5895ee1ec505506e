// Kubectl-jobpolicy is a plugin of kubectl: it says why a Job is in its state, what happens
// next, and what would happen in other circumstances.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/plugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := plugin.Run(ctx, os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
